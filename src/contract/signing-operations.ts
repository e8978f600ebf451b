// Apart from the schemas, because the thread of the job store needs this and no schema library.

/** Tells whether an operation signs; of another release, as far as its name says. */
export function signs(operation: string): boolean {
  return operation.startsWith('c2pa-');
}
