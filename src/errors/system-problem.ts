/** Explanations of the operating system's error codes, as the end of a sentence. */
const PROBLEMS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    EACCES: 'the service has no permission',
    EPERM: 'the operating system does not permit it',
    ENOENT: 'it does not exist',
    ENOTDIR: 'a part of the path is no folder',
    EEXIST: 'it exists already',
    EISDIR: 'it is a folder',
    ELOOP: 'its links lead in a circle',
    EIO: 'the device reported a read or write error',
    ENOSPC: 'the disk is full',
    EDQUOT: 'the disk quota of the service is used up',
    EFBIG: 'the file system or a limit of the process does not allow a file so large',
    EROFS: 'the file system is mounted read-only',
    ENAMETOOLONG: 'the path or a name in it is too long for the file system',
    EMFILE: 'the service has too many files open',
    ENFILE: 'the system has too many files open',
    EXDEV: 'the two paths are on different file systems',
    ENOTEMPTY: 'the folder is not empty',
    EBUSY: 'it is in use',
    ESTALE: 'the network file system lost the file',
    ETIMEDOUT: 'the network file system did not answer in time',
    ENXIO: 'the device does not exist',
    EADDRINUSE: 'another process already listens there',
    EADDRNOTAVAIL: 'this host has no such address',
    ECONNREFUSED: 'nothing listens there',
    ECONNRESET: 'the connection was broken off',
    EHOSTUNREACH: 'no way leads to that host',
    ENETUNREACH: 'no way leads to that network',
    ENOTFOUND: 'there is no host of that name',
    EAI_AGAIN: 'the name of the host could not be resolved',
  }),
);

/** Returns the code of a system error, such as `ENOENT`; undefined for any other value. */
export function systemErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Returns true for an error of the operating system; anything else that is thrown is a bug, not a fault of the file. */
export function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'errno' in error && 'syscall' in error;
}

/** Returns the explanation of a system error, such as `the disk is full`. */
export function problemOf(error: unknown): string {
  const code = systemErrorCode(error);
  return (code !== undefined ? PROBLEMS.get(code) : undefined) ?? `the operating system reported ${code ?? 'an error'}`;
}
