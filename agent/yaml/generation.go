package yaml

import (
	"encoding/json"
	"slices"

	"go.yaml.in/yaml/v4"
)

// shape says what a value in generate_content_config looks like. Exactly one of its fields is used, the first that is
// set; none means any JSON, kept as it is.
type shape struct {
	fields map[string]shape // by snake_case key
	list   *shape
	labels bool // a mapping of text to text, with the author's own keys
	scalar func(value) any
}

func (s shape) any() bool {
	return s.fields == nil && s.list == nil && !s.labels && s.scalar == nil
}

func generationShape() shape {
	number := shape{scalar: func(v value) any { return v.number() }}
	integer := shape{scalar: func(v value) any { return v.integer() }}
	flag := shape{scalar: func(v value) any { return v.boolean() }}
	text := shape{scalar: func(v value) any { return v.text() }}
	texts := shape{list: &text}
	return shape{fields: map[string]shape{
		"temperature": number, "top_p": number, "top_k": number, "presence_penalty": number, "frequency_penalty": number,
		"candidate_count": integer, "max_output_tokens": integer, "seed": integer, "logprobs": integer,
		"response_logprobs": flag, "stop_sequences": texts, "response_modalities": texts,
		"response_mime_type": text, "cached_content": text, "media_resolution": text, "service_tier": text,
		"response_json_schema": {}, "labels": {labels: true},
		"thinking_config": {fields: map[string]shape{"include_thoughts": flag, "thinking_budget": integer, "thinking_level": text}},
		"safety_settings": {list: &shape{fields: map[string]shape{"category": text, "threshold": text, "method": text}}},
		"tool_config": {fields: map[string]shape{
			"function_calling_config": {fields: map[string]shape{"mode": text, "allowed_function_names": texts}},
		}},
	}}
}

// laterGeneration are the fields of genai's GenerateContentConfig that have another place here or none yet.
func laterGeneration() map[string]string {
	return map[string]string{
		"system_instruction": "write it into instruction", "tools": "name them in the agent's tools",
		"response_schema": "use response_json_schema",
		"http_options":    "retries and timeouts are Tarry's", "routing_config": "", "model_selection_config": "",
		"speech_config": "", "audio_timestamp": "", "automatic_function_calling": "tools are called by Tarry",
		"image_config": "", "enable_enhanced_civic_answers": "", "model_armor_config": "", "should_return_http_response": "",
		"audio_transcription_config": "", "continuation_token": "", "automatic_continuation": "",
		"generation_output_config": "", "store": "",
	}
}

// generation turns generate_content_config into the JSON that genai reads. Equal settings give equal bytes.
func generation(v value) json.RawMessage {
	config, ok := shaped(v, generationShape(), laterGeneration()).(map[string]any)
	if !ok || len(config) == 0 {
		return nil
	}
	body, err := json.Marshal(config)
	if err != nil {
		v.fail("cannot be written as JSON; remove what is unusual in it")
		return nil
	}
	return body
}

// shaped reads v in the form s; what does not fit is reported.
func shaped(v value, s shape, later map[string]string) any {
	switch {
	case s.any():
		return plain(v)
	case s.scalar != nil:
		return s.scalar(v)
	case s.list != nil:
		out := []any{}
		for _, item := range v.list() {
			out = append(out, shaped(item, *s.list, nil))
		}
		return out
	}
	normal := snake
	if s.labels {
		normal = nil
	}
	o := v.object(normal)
	if o == nil {
		return nil
	}
	out := map[string]any{}
	if s.labels {
		for _, key := range o.order {
			out[key] = o.fields[key].text()
		}
		return out
	}
	o.only(keysOf(s.fields), later)
	for _, key := range o.order {
		if field, ok := o.get(key); ok && slices.Contains(keysOf(s.fields), key) {
			out[camel(key)] = shaped(field, s.fields[key], nil)
		}
	}
	return out
}

// plain reads any YAML as JSON.
func plain(v value) any {
	switch v.node.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for i, field := range v.pairs() {
			out[v.node.Content[2*i].Value] = plain(field)
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range v.items() {
			out = append(out, plain(item))
		}
		return out
	default:
	}
	switch v.node.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return v.boolean()
	case "!!int", "!!float":
		return v.number()
	}
	return v.text()
}
