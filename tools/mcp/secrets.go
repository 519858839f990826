package mcp

import (
	"context"
	"errors"
	"fmt"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
)

func (c *conn) resolve(ctx context.Context, templates map[string]agent.SecretTemplate) (map[string]auth.Secret, error) {
	out := map[string]auth.Secret{}
	for name, template := range templates {
		value, err := template.Expand(func(src agent.Source) (string, error) {
			if c.opener.cfg.Secrets == nil {
				return "", errors.New("this process resolves no secrets")
			}
			secret, err := c.opener.cfg.Secrets(ctx, src)
			c.secrets.Add(secret)
			return secret.Reveal(), err
		})
		if err != nil {
			return nil, &tools.Error{Message: fmt.Sprintf("toolset %s: the secret of %s is not available", c.def.Name, name), Cause: err}
		}
		out[name] = auth.NewSecret(value)
	}
	return out, nil
}

// clean takes the definition's secrets out of what a server made the model, or a person, hear of.
func (c *conn) clean(err error) error {
	var told *tools.Error
	var asked *tools.InputRequiredError
	switch {
	case errors.As(err, &asked):
		return c.cleanInputs(asked)
	case !errors.As(err, &told):
		return err // of a fixed vocabulary
	}
	out := &tools.Error{Message: c.secrets.Scrub(told.Message), Cause: told.Cause}
	if told.Cause != nil {
		if text := told.Cause.Error(); c.secrets.Scrub(text) != text {
			out.Cause = errors.New(c.secrets.Scrub(text))
		}
	}
	return out
}

// cleanInputs refuses where something else than the server's would come out.
func (c *conn) cleanInputs(asked *tools.InputRequiredError) error {
	out := &tools.InputRequiredError{State: asked.State, Plain: asked.Plain, Answers: asked.Answers}
	told := c.secrets.Scrub(asked.State) != asked.State
	for _, in := range asked.Inputs {
		told = told || c.secrets.Scrub(in.URL) != in.URL || c.secrets.Scrub(in.Key) != in.Key || c.secrets.Scrub(string(in.Schema)) != string(in.Schema)
		in.Message = c.secrets.Scrub(in.Message)
		out.Inputs = append(out.Inputs, in)
	}
	if told {
		return tools.Errorf("toolset %s: the server asks a person for input and repeats a secret of the definition in it", c.def.Name)
	}
	return out
}
