package connect

import (
	"net/http"

	"tarry/internal/form"
	"tarry/server/web"
)

// Question is what a tool asks, or waits for; its fields but Result are empty once the request has ended.
type Question struct {
	// Result says that the tool waits for the result of what it began, and asks nothing.
	Result bool
	// Message is the tool's text, Payload what it shows besides: JSON text, or empty.
	Message string
	Payload string
	// Fields have names that are unique on the page; see [ControlName]. Without any there is one control, [AnswerControl],
	// for a text, or for JSON if there is a Schema.
	Fields []form.Field
	Schema string
	// Value is what was filled into that control.
	Value string
}

// AnswerControl is the name of the control of a question that no form could be made of.
const AnswerControl = "answer"

func (h *Handler) ofTool(page Page, token, back string) view {
	title := "A question"
	if page.Question.Result {
		title = "A result"
	}
	return view{status: http.StatusOK, file: "question.html", Frame: web.Frame{Title: title}, Page: page, Action: AnswerPath, CSRF: token, ReturnTo: back}
}
