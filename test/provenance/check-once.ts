// Forked by tests: checks assertions once and then has nothing left to do.
import { createAssertionTrial } from '#provenance/authoring/assertion-trial.ts';

await createAssertionTrial().checkAssertions([{ label: 'com.example', data: 1 }], new AbortController().signal);
