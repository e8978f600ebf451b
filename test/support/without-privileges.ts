/** The user and group that own nothing, on every Linux. */
const NOBODY = 65534;

/**
 * Runs something as a user for whom permissions count: root is let in everywhere, so that as root this process takes
 * the identity of `nobody` until it is done. Tests of one file run one after the other, each file in its own process.
 */
export async function withoutPrivileges<T>(run: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return await run();
  process.setegid?.(NOBODY);
  process.seteuid?.(NOBODY);
  try {
    return await run();
  } finally {
    process.seteuid?.(0);
    process.setegid?.(0);
  }
}
