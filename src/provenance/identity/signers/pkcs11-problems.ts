import { AppError } from '#errors/app-error.ts';

/** Return values of PKCS #11 (version 2.40, §11.1) which say that the device was away, or has closed sessions. */
const LOST: ReadonlySet<string> = new Set([
  'CKR_CRYPTOKI_ALREADY_INITIALIZED',
  'CKR_CRYPTOKI_NOT_INITIALIZED',
  'CKR_DEVICE_ERROR',
  'CKR_DEVICE_REMOVED',
  'CKR_FUNCTION_FAILED',
  'CKR_GENERAL_ERROR',
  'CKR_KEY_HANDLE_INVALID',
  'CKR_OBJECT_HANDLE_INVALID',
  'CKR_OPERATION_ACTIVE',
  'CKR_OPERATION_NOT_INITIALIZED',
  'CKR_SESSION_CLOSED',
  'CKR_SESSION_HANDLE_INVALID',
  'CKR_TOKEN_NOT_PRESENT',
  'CKR_USER_NOT_LOGGED_IN',
]);

/** Those of a key or token that cannot sign with an algorithm. */
const UNSUPPORTED: ReadonlySet<string> = new Set([
  'CKR_FUNCTION_NOT_SUPPORTED',
  'CKR_KEY_FUNCTION_NOT_PERMITTED',
  'CKR_KEY_SIZE_RANGE',
  'CKR_KEY_TYPE_INCONSISTENT',
  'CKR_MECHANISM_INVALID',
  'CKR_MECHANISM_PARAM_INVALID',
]);

const WRONG_PIN: ReadonlySet<string> = new Set(['CKR_PIN_INCORRECT', 'CKR_PIN_INVALID', 'CKR_PIN_LEN_RANGE']);

/** Returns the name of a return value, such as `CKR_PIN_INCORRECT`; that of an error of another kind. */
export function nameOf(error: unknown): string {
  return error instanceof Error ? (/CKR_\w+/.exec(error.message)?.[0] ?? error.name) : 'an unknown error';
}

/** Tells whether a module that is initialized again may work. */
export function isLost(error: unknown): boolean {
  return LOST.has(nameOf(error)) || (error instanceof AppError && error.reason === 'SIGNER_AWAY');
}

export function isPinWrong(error: unknown): boolean {
  return WRONG_PIN.has(nameOf(error));
}

/** Returns the AppError of what a module threw. */
export function problemOfModule(cause: unknown, device: string, algorithm: string): AppError {
  if (cause instanceof AppError) return cause;
  const name = nameOf(cause);
  if (!UNSUPPORTED.has(name))
    return new AppError('SIGNER_AWAY', { device, problem: `its module reported ${name}` }, { cause });
  const remedy = `Its module reported ${name}: choose another algorithm, or a key that the token lets sign with this one`;
  return new AppError('SIGNER_ALGORITHM_UNSUPPORTED', { algorithm, device, remedy }, { cause });
}
