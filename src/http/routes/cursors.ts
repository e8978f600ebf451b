import { AppError } from '#errors/app-error.ts';

/** Returns the cursor of the page after an entry. It is encoded because callers must not build cursors themselves. */
export function cursorAfter(key: string): string {
  return Buffer.from(key).toString('base64url');
}

/** Returns the entry that a cursor stands for. Throws `REQUEST_INVALID` for one that `cursorAfter` did not make of such a key. */
export function keyOfCursor(cursor: string, isKey: (key: string) => boolean = () => true): string {
  const key = Buffer.from(cursor, 'base64url').toString();
  if (cursorAfter(key) === cursor && isKey(key)) return key;
  throw new AppError(
    'REQUEST_INVALID',
    { field: 'cursor', problem: 'is none that this service gave out. Give a next_cursor as it is, or none' },
    { field: 'cursor' },
  );
}
