package bars

import "slices"

// Table returns every bar that can be measured from inside the repository in minutes. Those that need a long run (leaks,
// chaos, kills at random moments) are in `make soak`.
func Table() []Bar { return slices.Concat(calls(), processes(), providers(), searches(), quality()) }

func atMost(issue int, what, benchmark, unit string, base float64, terms ...Term) Bar {
	return Bar{Issue: issue, What: what, Reading: Source{benchmark, unit}, Base: base, Terms: terms}
}

func atLeast(issue int, what, benchmark, unit string, base float64, terms ...Term) Bar {
	b := atMost(issue, what, benchmark, unit, base, terms...)
	b.AtLeast = true
	return b
}

func times(factor float64, benchmark, unit string) Term { return Term{factor, Source{benchmark, unit}} }

func exact(list ...Bar) []Bar {
	for i := range list {
		list[i].Exact = true
	}
	return list
}

func ofData(list ...Bar) []Bar {
	for i := range list {
		list[i].Data = true
	}
	return list
}

func calls() []Bar {
	const (
		bare    = "Call/bare_MCP_server_on_stdio"
		ours    = "Call/hermesd,_tool_call,_audit_process"
		direct  = "MCPServer/directly,_"
		through = "MCPServer/through_hermesd"
		raw     = "Pipeline/raw_provider/callers=1"
		commit  = "Pipeline/one_commit,_"
		stages  = "Pipeline/all_stages,_audit_"
		one     = "/callers=1"
		many    = "/callers=16"
	)
	list := []Bar{
		atMost(2, "warm tool_call: not slower than a bare stdio server", ours+one, "p50-ms", 0, times(1, bare+one, "p50-ms")),
		atLeast(2, "the same, 16 callers", ours+many, "calls/s", 0, times(1, bare+many, "calls/s")),
		atMost(4, "all stages, process: raw call, one commit, 0.2 ms", stages+"process"+one, "p50-µs", 200, times(1, raw, "p50-µs"), times(1, commit+"process", "p50-µs")),
		atMost(4, "all stages, power: raw call, one commit, 0.2 ms", stages+"power"+one, "p50-µs", 200, times(1, raw, "p50-µs"), times(1, commit+"power", "p50-µs")),
		atLeast(4, "all stages, process, 16 callers", stages+"process"+many, "calls/s", 8000),
		atLeast(4, "all stages, power, 16 callers", stages+"power"+many, "calls/s", 8000),
		atMost(4, "a decision by 50 rules", "Decide50Rules", "ns/op", 50_000),
	}
	beside := func(what, benchmark, direct string) []Bar {
		return []Bar{
			atMost(7, "small call, "+what+": direct and 0.3 ms", benchmark+one, "p50-ms", .3, times(1, direct+one, "p50-ms")),
			atLeast(7, "the same, 16 callers: 70% of direct", benchmark+many, "calls/s", 0, times(.7, direct+many, "calls/s")),
		}
	}
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		// What the daemon adds by itself, and with the way to it: another process, or HTTP.
		list = append(list, beside("daemon's own entry, "+version, through+",_"+version, direct+version)...)
		list = append(list, beside("hermesd mcp, "+version, through+"_mcp,_"+version, direct+version)...)
		list = append(list, beside("HTTP, "+version, through+"_over_HTTP,_"+version, direct+version)...)
	}
	return list
}

// Giant is the benchmark of hermesd before one server of 3,300 tools; below it are call, search and memory.
const Giant = "Served/hermesd,_one_server_of_3300_tools"

// forty is the same before many servers.
const forty = "Served/hermesd,_40_servers_of_80_tools"

func processes() []Bar {
	const (
		floor  = "Served/bare_server,_80_tools"
		cpu    = "cpu-ms/call"
		memory = 120 // million bytes
	)
	var list []Bar
	for _, callers := range []string{"/callers=1", "/callers=16"} {
		list = append(list,
			atMost(2, "CPU, 40 x 80 tools: twice the bare server's, "+callers[1:], forty+"/call"+callers, cpu, 0, times(2, floor+callers, cpu)),
			atMost(2, "CPU, one server of 3,300: a fifth more, "+callers[1:], Giant+"/call"+callers, cpu, 0, times(1.2, forty+"/call"+callers, cpu)),
		)
	}
	return append(list, exact(
		atMost(2, "resident under load, one server of 3,300 tools", Giant+"/memory", "MB", memory),
		atMost(2, "resident at a first start, the same", Giant+"/memory", "first-start-MB", memory),
		atMost(2, "resident under load, 40 x 80 tools", forty+"/memory", "MB", memory),
		atMost(2, "resident at a first start, the same", forty+"/memory", "first-start-MB", memory),
	)...)
}

func providers() []Bar {
	first := atMost(5, "lazy first call, AutoMTLS, isolation default; bare go-plugin beside", "FirstCall/hermesd,_isolation_default", "p50-ms", 80)
	first.Beside = &Source{"FirstCall/bare_go-plugin,_AutoMTLS", "p50-ms"}
	return []Bar{
		atMost(5, "ready with 20 plugins, warm cache", "Ready", "p50-ms", 150),
		first,
		atMost(5, "the same, isolation strict", "FirstCall/hermesd,_isolation_strict", "p50-ms", 80),
		atMost(5, "a killed plugin answers again", "Recovery/plugin", "p90-ms", 1000),
		atMost(5, "a killed MCP server answers again", "Recovery/MCP_server", "p90-ms", 1000),
	}
}

func searches() []Bar {
	return append(ofData(
		atMost(3, "search, 3,000 tools", "Search/tools=3000", "p50-ms", 1),
		atMost(3, "the same, build", "Search/tools=3000", "build-ms", 400),
		atMost(3, "search, 25,000 tools", "Search/tools=25000", "p50-ms", 3),
		atMost(3, "the same", "Search/tools=25000", "p95-ms", 10),
		atMost(3, "search, 100,000 tools", "Search/tools=100000", "p50-ms", 6),
		atMost(3, "the same", "Search/tools=100000", "p95-ms", 25),
		atMost(3, "the same, build", "Search/tools=100000", "build-ms", 25_000),
		atMost(3, "the same, reopening", "Search/tools=100000", "reopen-ms", 300),
	),
		atMost(3, "search over MCP, 40 x 80 tools", forty+"/search/callers=1", "p50-ms", 3),
		atLeast(3, "the same, 16 callers", forty+"/search/callers=16", "calls/s", 600),
	)
}

// quality is of the dev part of the evaluation data.
func quality() []Bar {
	return ofData(exact(
		atLeast(3, "macro recall", "Search/macro", "recall@5", .81),
		atLeast(3, "macro nDCG", "Search/macro", "nDCG@5", .74),
		atLeast(3, "recall, many", "Search/many", "recall@5", .895),
		atLeast(3, "recall, arcade", "Search/arcade", "recall@5", .79),
		atLeast(3, "recall, stress100k", "Search/stress100k", "recall@5", .77),
		atLeast(3, "recall, keyword queries", "Search/keyword", "recall@5", .98),
		atMost(3, "answerable without a match, worst set", "Search/worst", "no-match", .015),
		atMost(3, "unanswerable with an unmarked match, many", "Search/many", "false", .15),
		atMost(3, "answerable marked weak, many", "Search/many", "weak", .05),
		atMost(3, "answerable marked weak, mcptools", "Search/mcptools", "weak", .05),
	)...)
}
