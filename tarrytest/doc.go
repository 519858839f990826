// Package tarrytest lets users of Tarry test their agents: fakes of what an agent talks to (a [Model] that says what it is
// told, a [Toolset] in place of an MCP server, [Credentials] that are there or not), and [Start], which runs an agent in the
// test's process without any server: the workflow and the activities are the real ones, the clock jumps over waits.
//
// A test of an agent whose tool needs a login reads as the run does:
//
//	run := tarrytest.Start(t, app, "Read the report.")   // until it ends, or until nothing is left but waits
//	require.Equal(t, "drive", run.Waiting()[0].Key)
//	run.Grant("drive", "some-token")                     // goes on
//	require.Equal(t, "done", run.Outcome())
//
// So do those of the other waits. Answers are checked as the server checks them:
//
//	run := tarrytest.Start(t, app, "Pay the bill.", tarrytest.WithModel(tarrytest.NewModel(
//		tarrytest.Calls("pay", map[string]any{"amount": 3}), tarrytest.Says("{{last_response.result}}"),
//	)))
//	require.JSONEq(t, `{"amount": 3}`, string(run.Waiting()[0].Args)) // what the person is shown is what runs
//	run.Approve()                                                     // or Reject, or Expire("pay")
//
// [Run.Reply] answers the question of a tool, [Run.Complete] gives the result of a long-running call, [Run.Fill] fills in what an
// MCP server asks for. [Run.Expire] and [Run.Pass] let time pass.
//
// A session may have to go on in another run, as Temporal bounds a run's history. [Run.ContinueAsNew] makes a waiting run do so,
// and [WithShortRuns] all runs wherever they can; a test that holds with it holds wherever the runs of a session end.
//
// The package is for tests only and asks no person, no provider and no model. What it cannot show: that workflow code is
// deterministic (record a history and use package replay) and what a real provider does.
package tarrytest
