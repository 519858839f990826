package yaml

import (
	"encoding/json"
	"slices"

	"tarry/agent"
)

// callbacks reads the list of one point.
func (l *loader) callbacks(a *agent.Agent, v value, p agent.CallbackPoint) {
	// Validate reports callbacks of an agent that can have none under one field.
	v.place("callbacks")
	for _, item := range v.list() {
		o := item.object(nil)
		if o == nil {
			continue
		}
		o.only([]string{"name", "args"}, nil)
		name, ok := o.get("name")
		if !ok {
			item.fail("has no name; write - name: and a registered callback")
			continue
		}
		c := agent.Callback{Name: name.text()}
		if known := l.opts.Callbacks[p]; !slices.Contains(known, c.Name) {
			name.fail("no Go callback %s is registered for %s; %s", name.shown(), p.Key(), listed(known))
			continue
		}
		if args, ok := o.get("args"); ok {
			c.Args = callbackArgs(args)
		}
		if a.Callbacks == nil {
			a.Callbacks = agent.Callbacks{}
		}
		a.Callbacks[p] = append(a.Callbacks[p], c)
	}
}

// callbackArgs reads a mapping, or ADK's list of names and values.
func callbackArgs(v value) json.RawMessage {
	out := map[string]any{}
	if v.isList() {
		for _, item := range v.items() {
			o := item.object(nil)
			if o == nil {
				return nil
			}
			o.only([]string{"name", "value"}, nil)
			if !o.has("name") {
				item.fail("has no name; write - name: and value:")
				continue
			}
			if value, ok := o.fields["value"]; ok {
				out[o.text("name")] = plain(value)
			}
		}
	} else if o := v.object(nil); o != nil {
		for _, key := range o.order {
			out[key] = plain(o.fields[key])
		}
	}
	body, err := json.Marshal(out)
	if err != nil {
		v.fail("cannot be written as JSON; remove what is unusual in it")
		return nil
	}
	return body
}
