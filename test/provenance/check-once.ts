// Forked by tests: checks assertions once and then has nothing left to do.
import { createAssertionChecker } from '#provenance/assertion-checker.ts';

const checker = createAssertionChecker({ budgets: { timeMs: 600_000, memoryBytes: 1024 ** 3 } });
await checker.checkAssertions([{ label: 'com.example', data: 1 }], new AbortController().signal);
