// The service with input workers that end it with kill -9 when an input reaches the phase that KILL_AT names.
import { main } from '#main.ts';

await main(new URL('./killing-worker.ts', import.meta.url));
