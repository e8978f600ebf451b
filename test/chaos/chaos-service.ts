// The service with input workers that end it with kill -9 at the point that CHAOS_KILL_POINT names.
import { runService } from '#service.ts';

await runService(new URL('./chaos-worker.ts', import.meta.url));
