// The service with input workers that end it with kill -9 at the point that CHAOS_KILL_POINT names.
import { runService } from '#service.ts';
import { KILL_POINT_VARIABLE, NODE_VARIABLE } from './kill-point.ts';

// A worker in a sandbox could not kill the service.
if (process.env[KILL_POINT_VARIABLE] !== undefined) process.env['SERVICE__WORKER__SANDBOX'] = 'off';
await runService(new URL('./chaos-worker.ts', import.meta.url), [KILL_POINT_VARIABLE, NODE_VARIABLE]);
