package openai

import (
	"encoding/json"
	"strconv"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
	"google.golang.org/genai"

	"tarry/models"
)

func (m *Model) params(req *models.Request) (openai.ChatCompletionNewParams, error) {
	messages, err := m.messages(req)
	if err != nil {
		return openai.ChatCompletionNewParams{}, err
	}
	params := openai.ChatCompletionNewParams{Model: m.name, Messages: messages}
	config := req.Config
	if config == nil {
		return params, nil
	}
	m.setGeneration(&params, config)
	if err := m.setFormat(&params, config); err != nil {
		return openai.ChatCompletionNewParams{}, err
	}
	for _, tool := range config.Tools {
		if tool == nil {
			continue
		}
		for _, declaration := range tool.FunctionDeclarations {
			if declaration == nil {
				continue
			}
			function, err := m.function(declaration)
			if err != nil {
				return openai.ChatCompletionNewParams{}, err
			}
			params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(function))
		}
	}
	if len(params.Tools) > 0 && config.ToolConfig != nil {
		setToolChoice(&params, config.ToolConfig.FunctionCallingConfig)
	}
	return params, nil
}

func (m *Model) setGeneration(params *openai.ChatCompletionNewParams, config *genai.GenerateContentConfig) {
	if config.Temperature != nil {
		params.Temperature = openai.Float(widened(*config.Temperature))
	}
	if config.TopP != nil {
		params.TopP = openai.Float(widened(*config.TopP))
	}
	if config.PresencePenalty != nil {
		params.PresencePenalty = openai.Float(widened(*config.PresencePenalty))
	}
	if config.FrequencyPenalty != nil {
		params.FrequencyPenalty = openai.Float(widened(*config.FrequencyPenalty))
	}
	if config.Seed != nil {
		params.Seed = openai.Int(int64(*config.Seed))
	}
	if config.MaxOutputTokens > 0 {
		limit := openai.Int(int64(config.MaxOutputTokens))
		if m.maxTokens {
			params.MaxTokens = limit
		} else {
			params.MaxCompletionTokens = limit
		}
	}
	if len(config.StopSequences) > 0 {
		params.Stop.OfStringArray = config.StopSequences
	}
}

// setFormat maps "answer in JSON". A schema is sent without strict mode, which takes only a part of JSON Schema.
func (m *Model) setFormat(params *openai.ChatCompletionNewParams, config *genai.GenerateContentConfig) error {
	switch {
	case config.ResponseJsonSchema != nil || config.ResponseSchema != nil:
		schema, err := m.schema(config.ResponseJsonSchema, config.ResponseSchema)
		if err != nil {
			return err
		}
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "response", Schema: schema},
		}
	case config.ResponseMIMEType == "application/json":
		params.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	}
	return nil
}

func (m *Model) function(declaration *genai.FunctionDeclaration) (shared.FunctionDefinitionParam, error) {
	out := shared.FunctionDefinitionParam{Name: declaration.Name}
	if declaration.Description != "" {
		out.Description = openai.String(declaration.Description)
	}
	schema, err := m.schema(declaration.ParametersJsonSchema, declaration.Parameters)
	if err != nil {
		return out, err
	}
	if schema == nil {
		schema = map[string]any{"type": "object"}
	}
	if schema["type"] == "object" && schema["properties"] == nil {
		schema["properties"] = map[string]any{} // OpenAI refuses an object schema without it
	}
	out.Parameters = schema
	return out, nil
}

// schema returns a fresh map: raw, which may be any value that marshals to a JSON Schema object, or else converted.
func (m *Model) schema(raw any, converted *genai.Schema) (map[string]any, error) {
	if raw == nil {
		return jsonSchema(converted), nil
	}
	encoded, err := json.Marshal(raw)
	if err != nil {
		return nil, m.refuse("a JSON schema is not JSON")
	}
	var out map[string]any
	if err := json.Unmarshal(encoded, &out); err != nil {
		return nil, m.refuse("a JSON schema is not an object")
	}
	return out, nil
}

func setToolChoice(params *openai.ChatCompletionNewParams, config *genai.FunctionCallingConfig) {
	if config == nil {
		return
	}
	switch config.Mode {
	case genai.FunctionCallingConfigModeNone:
		params.ToolChoice.OfAuto = openai.String("none")
	case genai.FunctionCallingConfigModeAuto:
		params.ToolChoice.OfAuto = openai.String("auto")
	case genai.FunctionCallingConfigModeAny:
		if len(config.AllowedFunctionNames) == 1 {
			params.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(
				openai.ChatCompletionNamedToolChoiceFunctionParam{Name: config.AllowedFunctionNames[0]})
			return
		}
		params.ToolChoice.OfAuto = openai.String("required")
	default:
	}
}

// widened keeps the decimal that was meant: 0.7 as a float32 would go out as 0.699999988079071.
func widened(f float32) float64 {
	out, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return float64(f)
	}
	return out
}
