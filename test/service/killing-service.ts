// The service with input workers that end it with kill -9 when an input reaches the phase that KILL_AT names.
import { runService } from '#service.ts';

await runService(new URL('./killing-worker.ts', import.meta.url));
