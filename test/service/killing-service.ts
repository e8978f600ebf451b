// The service with input workers that end it with kill -9 when an input reaches a phase for the first time: the one in its
// path or its output's, `killed-when-<phase>`; `always-killed-when-<phase>` ends it each time.
import { runService } from '#service.ts';

// A worker in a sandbox could not kill the service.
process.env['SERVICE__WORKER__SANDBOX'] = 'off';
await runService(new URL('./killing-worker.ts', import.meta.url));
