package wasmtest

// Hostcalls about the process: logs, clocks, shared data, metrics.

func serveLog(in *invocation) Status {
	level := in.word(0)
	if level > lastLog {
		return BadArgument
	}
	in.vm.logs = append(in.vm.logs, LogLine{level, in.data[0]})
	return OK
}

func serveGetLogLevel(in *invocation) Status {
	return in.returnWord(in.vm.host.LogLevel, 0)
}

// What WASI calls the clocks, and its errors.
const (
	clockWall        = 0
	clockMonotonic   = 1
	errnoFault       = 21
	errnoUnsupported = 58
)

func serveClock(in *invocation) Status {
	in.call.Clock = in.word(0)
	switch in.call.Clock {
	case clockWall:
		in.call.Time = in.vm.host.Clock.Wall
	case clockMonotonic:
		in.call.Time = in.vm.host.Clock.Mono
	default:
		return errnoUnsupported
	}
	if in.returnLong(uint64(in.call.Time), 2) != OK {
		return errnoFault
	}
	return OK
}

func serveCurrentTime(in *invocation) Status {
	in.call.Clock, in.call.Time = clockWall, in.vm.host.Clock.Wall
	return in.returnLong(uint64(in.call.Time), 0)
}

func serveGetSharedData(in *invocation) Status {
	value, cas, status := in.vm.host.Shared.get(sharedKey{in.vm.id, in.data[0]})
	in.call.CAS = cas
	if status != OK {
		return status
	}
	if status := in.returnData(value, 0); status != OK {
		return status
	}
	return in.returnWord(cas, 2)
}

func serveSetSharedData(in *invocation) Status {
	in.call.CAS = in.word(0)
	return in.vm.host.Shared.set(sharedKey{in.vm.id, in.data[0]}, in.data[1], in.call.CAS)
}

func serveDefineMetric(in *invocation) Status {
	id, status := in.vm.metrics.define(in.word(0), in.data[0])
	if status != OK {
		return status
	}
	return in.returnWord(id, 1)
}

func serveIncrementMetric(in *invocation) Status {
	return in.vm.metrics.increment(in.word(0), int64(in.words[1]))
}

func serveRecordMetric(in *invocation) Status {
	return in.vm.metrics.record(in.word(0), in.words[1])
}

func serveGetMetric(in *invocation) Status {
	value, status := in.vm.metrics.get(in.word(0))
	if status != OK {
		return status
	}
	return in.returnLong(value, 1)
}
