// Package policy decides, as pure functions of values, what an agent may use and which tools stay out of its list.
//
// [Toolsets] resolves toolset names, [Scope] is what one agent was granted less what is excluded for it, and [Defer] is
// the operator's wish about deferral. Nothing here knows of processes, sessions or transports.
package policy
