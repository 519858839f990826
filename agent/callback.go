package agent

// CallbackPoint says when a callback runs.
type CallbackPoint string

// The points. Their keys in files are these names with "_callbacks".
const (
	BeforeAgent  CallbackPoint = "before_agent"
	AfterAgent   CallbackPoint = "after_agent"
	BeforeModel  CallbackPoint = "before_model"
	AfterModel   CallbackPoint = "after_model"
	OnModelError CallbackPoint = "on_model_error"
	BeforeTool   CallbackPoint = "before_tool"
	AfterTool    CallbackPoint = "after_tool"
	OnToolError  CallbackPoint = "on_tool_error"
)

// CallbackPoints lists all of them.
func CallbackPoints() []CallbackPoint {
	return []CallbackPoint{BeforeAgent, AfterAgent, BeforeModel, AfterModel, OnModelError, BeforeTool, AfterTool, OnToolError}
}

// Around says whether callbacks of the point run around a whole agent, of whatever kind, and not around its calls.
func (p CallbackPoint) Around() bool { return p == BeforeAgent || p == AfterAgent }

// Key is the point's key in files.
func (p CallbackPoint) Key() string { return string(p) + "_callbacks" }

// Callbacks are lists of callbacks by point.
type Callbacks map[CallbackPoint][]Callback
