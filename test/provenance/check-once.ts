// Forked by tests: checks assertions once and then has nothing left to do.
import { createAssertionChecker } from '#provenance/assertion-checker.ts';

await createAssertionChecker().checkAssertions([{ label: 'com.example', data: 1 }], new AbortController().signal);
