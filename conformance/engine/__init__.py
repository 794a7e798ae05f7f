"""The engine: plan, calls, answers, judgement. Each stage is a function of the one before; none imports a backend."""
