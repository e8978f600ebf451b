// The service with input workers that end it with kill -9 when an input reaches the phase that KILL_AT names.
import { runService } from '#service.ts';

// A worker in a sandbox could not kill the service.
process.env['SERVICE__WORKER__SANDBOX'] = 'off';
await runService(new URL('./killing-worker.ts', import.meta.url), ['KILL_AT']);
