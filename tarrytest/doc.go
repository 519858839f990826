// Package tarrytest lets users of Tarry test their agents: fakes of what an agent talks to (a [Model] that says what it is
// told, a [Toolset] in place of an MCP server, [Credentials] that are there or not), and [Start], which runs an agent in the
// test's process without any server: the workflow and the activities are the real ones, the clock jumps over waits.
//
// A test of an agent whose tool needs a login reads as the run does:
//
//	run := tarrytest.Start(t, app, "Read the report.")   // until it ends, or until nothing but people can help
//	require.Equal(t, "drive", run.Waiting()[0].Key)
//	run.Grant("drive", "some-token")                     // goes on
//	require.Equal(t, "done", run.Outcome())
//
// The package is for tests only and asks no person, no provider and no model. What it cannot show: that workflow code is
// deterministic (record a history and use package replay) and what a real provider does.
package tarrytest
