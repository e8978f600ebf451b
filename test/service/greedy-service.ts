// The service with input workers that ask for the key of another identity while they sign the input greedy.wav.
import { runService } from '#service.ts';

await runService(new URL('./greedy-worker.ts', import.meta.url), []);
