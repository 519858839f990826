//go:build pages

package pages_test

import (
	"strings"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/internal/form"
	"tarry/server/connect"
)

// What others choose may be as long as it is allowed to be, without a place to break it.
const (
	longHost  = "a-tenant-with-a-very-long-name.eu-central-1.identity.platform.internal.example.com:8443"
	longScope = "https://www.example.com/auth/calendar.events.readonly.and.everything.else.there.is"
	longName  = "a.person.with.a.rather.long.name.and.no.spaces.in.it@department.company.example.com"
)

// requests are the pages of /connect by request id.
func requests() map[string]connect.Page {
	deadline := time.Now().Add(26 * time.Hour)
	out := map[string]connect.Page{
		"ask": {
			Agent: "booker", Tool: "book_room", Toolset: "calendar", ProviderHost: "accounts.example.com", ServerHost: "mcp.calendar.example",
			Scopes: []string{"calendar.read", "calendar.write"}, Deadline: deadline,
		},
		"ask-long": {
			ProviderHost: longHost, ServerHost: longHost, Scopes: []string{longScope, "openid"}, Runs: 3,
			Askers: []connect.Asker{{Agent: "a_planner_of_everything_that_there_is_to_plan", Toolset: "calendar"}, {Agent: "booker", Tool: "book_room_in_the_other_building_if_there_is_none_here"}},
		},
		"ask-device": {Agent: "booker", ProviderHost: "login.example.com", ServerHost: "tv.example.com", ByDevice: true},
		"device": {
			ProviderHost: "login.example.com", ServerHost: "tv.example.com", ByDevice: true,
			Device: &connect.Device{UserCode: auth.NewSecret("WDJB-MJHT"), URI: "https://login.example.com/device", Complete: auth.NewSecret("https://login.example.com/device?user_code=WDJB-MJHT"), Expires: deadline},
		},
		"confirm": {
			Agent: "booker", Tool: "cancel_meeting", Toolset: "calendar", ServerHost: "mcp.calendar.example", Deadline: deadline,
			Confirmation: &connect.Confirmation{
				Hint: "This meeting has 40 guests; each of them gets a mail.", Payload: `{"send_mail":true}`,
				Args: `{"meeting":"weekly-planning-of-the-whole-department-with-a-name-that-does-not-end","id":` + strings.Repeat("9", 60) + `,"notify":[1,2]}`,
			},
		},
		"confirm-plain": {Agent: "booker", Tool: "cancel_meeting", Confirmation: &connect.Confirmation{Args: `{"id":12}`}},
		"question":      {Agent: "booker", Tool: "ask", Input: true, Question: &connect.Question{Message: "Which of the two rooms do you prefer?", Payload: `{"rooms":["Kyoto","Lisbon"]}`}},
		"question-form": {Agent: "booker", Tool: "ask", Input: true, Question: &connect.Question{Message: "What is this trip for?", Fields: fields()}},
		"question-json": {Agent: "booker", Tool: "ask", Input: true, Question: &connect.Question{Message: "Where to?", Schema: `{"type":"array","items":{"type":"string"}}`}},
		"result":        {Agent: "booker", Tool: "order_taxi", Input: true, Question: &connect.Question{Result: true, Message: "Ordered; the company calls back."}},
		"inputs": {
			Agent: "booker", Tool: "book_room", Toolset: "calendar", ServerHost: "mcp.calendar.example", Input: true, Deadline: deadline,
			Inputs: []connect.Input{{Message: "Who is the room for?", Fields: fields()}},
		},
		"inputs-url": {
			Agent: "booker", Tool: "pay", ServerHost: "mcp.pay.example", Input: true,
			Inputs: []connect.Input{{Message: "Please pay the deposit.", URL: "https://xn--pypal-4ve.example/" + strings.Repeat("checkout/", 12), Host: "xn--pypal-4ve.example", Unusual: true}},
		},
		"key":   {Agent: "forecaster", Tool: "forecast", ServerHost: "api.weather.example", Key: &connect.Key{Key: auth.Key{In: "header", Name: "X-Api-Key"}}},
		"basic": {Agent: "forecaster", Tool: "forecast", ServerHost: "api.weather.example", Key: &connect.Key{Key: auth.Key{Scheme: agent.SchemeBasic}, Again: true}, Runs: 2},
	}
	return out
}

func fields() []form.Field {
	return []form.Field{
		{Name: "field-0-0", Title: "Name", Kind: "text", Required: true, Description: "As it stands on the door sign."},
		{Name: "field-0-1", Title: "Mail address", Kind: "email", Required: true},
		{Name: "field-0-2", Title: "From", Kind: "date"},
		{Name: "field-0-3", Title: "People", Kind: "number", Value: "4"},
		{Name: "field-0-4", Title: "Floor", Kind: "select", Options: []form.Option{{Value: "1", Label: "First"}, {Value: "2", Label: "Second, with a name that is longer than a phone is wide"}}},
		{Name: "field-0-5", Title: "Equipment", Kind: "multiple", Options: []form.Option{{Value: "b", Label: "Beamer"}, {Value: "w", Label: "Whiteboard", Selected: true}}},
		{Name: "field-0-6", Title: "With lunch", Kind: "checkbox", Description: "For everybody; vegetarian unless you say otherwise."},
	}
}

type outcome struct {
	result connect.Result
	err    error
}

// outcomes are what the callback says, by state.
func outcomes() map[string]outcome {
	pending := connect.Result{Outcome: auth.StatusPending}
	out := map[string]outcome{
		"connected":  {result: connect.Result{Outcome: auth.StatusGranted, ProviderHost: longHost}},
		"declined":   {result: connect.Result{Outcome: auth.StatusDenied}},
		"expired":    {result: connect.Result{Outcome: auth.StatusExpired}},
		"cancelled":  {result: connect.Result{Outcome: auth.StatusCancelled}},
		"running":    {result: connect.Result{Outcome: auth.StatusExchanging}},
		"another":    {result: connect.Result{Outcome: auth.StatusPending, Change: &connect.Change{Flow: "f", Replaces: "r", From: "ada@example.com", To: longName, ProviderHost: "accounts.example.com"}}},
		"browser":    {result: pending, err: connect.ErrWrongBrowser},
		"user":       {result: pending, err: connect.ErrWrongUser},
		"provider":   {result: pending, err: connect.ErrProvider},
		"too-many":   {result: pending, err: connect.ErrTooMany},
		"setup":      {result: pending, err: &connect.MisconfiguredError{Text: "The provider's authorization endpoint is no web address."}},
		"try-again":  {result: pending, err: connect.ErrTryAgain},
		"unknown":    {err: connect.ErrUnknown},
		"flow-ended": {result: pending, err: connect.ErrExpired},
	}
	return out
}
