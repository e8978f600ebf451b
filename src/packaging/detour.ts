import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { findProgram } from '#processes/find-program.ts';
import type { PackagingPlan, PlannedStream } from './planning/packaging-plan.ts';
import { feedRouteOf } from './planning/stream-routes.ts';

/** A plan that goes round what the packager did not take, and what the caller should know of it. */
export interface Detour {
  readonly plan: PackagingPlan;
  readonly warning: Warning;
}

/**
 * The way round where the packager gave up a file that it was to read itself: ffmpeg brings it the same packets. Null where
 * there is none: the failure is of another kind, ffmpeg is not installed, or has brought the file already.
 */
export function detourOf(plan: PackagingPlan, error: unknown): Detour | null {
  if (!(error instanceof AppError) || error.reason !== 'PACKAGER_FAILED' || findProgram('ffmpeg') === null) return null;
  const { file, problem } = error.details as { file: string | null; problem: string };
  const isTurned = (stream: PlannedStream): boolean =>
    stream.route.kind === 'direct' && (file === null || stream.file === file);
  const turned = [...new Set(plan.streams.filter(isTurned).map((stream) => stream.file))];
  if (turned.length === 0) return null;
  const streams = plan.streams.map((stream) =>
    isTurned(stream) ? { ...stream, route: feedRouteOf(stream.codec) } : stream,
  );
  return { plan: { ...plan, streams }, warning: warning('PACKAGER_BYPASSED', { files: turned, problem }) };
}

/** Whether the way round failed as well: then the first failure says more of the file. */
export function isDeadEnd(error: unknown): boolean {
  return error instanceof AppError && (error.reason === 'PACKAGER_FAILED' || error.reason === 'FEED_FAILED');
}
