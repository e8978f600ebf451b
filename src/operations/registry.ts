import { AppError } from '#errors/app-error.ts';
import type { Operation, OperationName } from './operation.ts';
import { packageAndSign } from './package-and-sign.ts';
import { packageFolder } from './package-folder.ts';
import { signAudio, signVideo } from './sign-file.ts';
import { signFragmented } from './sign-fragmented.ts';
import { verify } from './verify.ts';

/** Every operation of the service. ARCHITECTURE.md lists what a further one takes. */
export const operations: readonly Operation[] = [
  signVideo,
  signAudio,
  signFragmented,
  packageAndSign,
  packageFolder,
  verify,
];

/** Returns the operation of a name. Throws `OPERATION_UNKNOWN` for one that only a newer release has. */
export function operationNamed(name: OperationName): Operation {
  const operation = operations.find((candidate) => candidate.name === name);
  if (operation === undefined) throw new AppError('OPERATION_UNKNOWN', { operation: name });
  return operation;
}
