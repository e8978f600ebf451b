// The service with input workers that flood their channel to the signer from the input flood.wav on.
import { runService } from '#service.ts';

await runService(new URL('./flooding-worker.ts', import.meta.url), []);
