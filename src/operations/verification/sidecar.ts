import { readRange } from '#bytes/byte-source.ts';
import type { ApiInputRef } from '#contract/request.ts';
import type { VerifyParams } from '#contract/verify-request.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { stemOf } from '#outputs/output-path.ts';
import { MAX_STORE_BYTES } from '#provenance/chain-limits.ts';
import { faultOf } from '../ingredients.ts';
import type { InputContext, InputWork, OperationServices } from '../operation.ts';

/** Reasons for which a file is taken to have no sidecar next to it: some servers refuse names that they do not have. */
const ABSENT: ReadonlySet<Reason> = new Set<Reason>([
  'SOURCE_NOT_FOUND',
  'SOURCE_IS_FOLDER',
  'SOURCE_NOT_REGULAR',
  'SOURCE_OUTSIDE_ROOTS',
  'HTTP_NOT_FOUND',
  'HTTP_FORBIDDEN',
  'S3_OBJECT_MISSING',
  'S3_ACCESS_DENIED',
]);

/**
 * Returns the manifest store of the sidecar that the request names for this input; null where it names none. Throws what
 * opening it throws, with the field of the request, and `SIDECAR_TOO_LARGE`.
 */
export async function namedSidecar(
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<Buffer | null> {
  const { sidecars = [] } = (work.params ?? {}) as VerifyParams;
  const index = sidecars.findIndex(({ input_index: inputIndex }) => inputIndex === work.inputIndex);
  const source = sidecars[index]?.source;
  if (source === undefined) return null;
  return await readSidecar(source, work, context, services).catch(faultOf(`params.sidecars[${index}].source`));
}

/** Returns the manifest store in `<stem>.c2pa` next to the input; null where there is none. */
export async function adjacentSidecar(
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<Buffer | null> {
  const source = sidecarOf(work.input);
  if (source === null) return null;
  try {
    return await readSidecar(source, work, context, services);
  } catch (error) {
    if (error instanceof AppError && ABSENT.has(error.reason)) return null;
    throw error;
  }
}

async function readSidecar(
  source: ApiInputRef,
  { inputIndex }: InputWork,
  { signal, scratch }: InputContext,
  { inputs }: OperationServices,
): Promise<Buffer> {
  // Budgets depend on the input alone, so its size is not reported.
  const file = await inputs.openFile(source, inputIndex, { signal, scratch });
  try {
    const { name, sizeBytes } = file;
    if (sizeBytes > MAX_STORE_BYTES) {
      throw new AppError('MANIFEST_TOO_LARGE', { name, sizeBytes, limitBytes: MAX_STORE_BYTES });
    }
    return await readRange(file, 0, sizeBytes, signal);
  } finally {
    await file.close();
  }
}

/** Returns the reference to the sidecar of a file; null where its address cannot be derived, such as from a presigned one. */
export function sidecarOf(input: ApiInputRef): ApiInputRef | null {
  if (input.type === 'local_file_path') return { type: input.type, path: withSidecarName(input.path) };
  if (input.type !== 'remote_file_url' || /[?#]/.test(input.url) || input.url.endsWith('/')) return null;
  return { type: input.type, url: withSidecarName(input.url) };
}

function withSidecarName(address: string): string {
  const start = address.lastIndexOf('/') + 1;
  return `${address.slice(0, start)}${stemOf(address.slice(start))}.c2pa`;
}
