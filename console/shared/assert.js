// @ts-nocheck
// Written by "npm run docs" from src/errors/assert.ts: change that.
// Browsers run this module too (`scripts/console-modules.ts`), so it uses nothing of Node.

/** Returns the item of a list or typed array at an index that is known to exist. An index outside is a bug: throws. */
export function itemAt   (list              , index        )    {
  const exists = Number.isInteger(index) && index >= 0 && index < list.length;
  // The message is put together only where it is needed: this runs in inner loops.
  if (!exists) throw new Error(`no item ${index} in a list of ${list.length}`);
  return list[index]     ;
}

/** Returns the value of a key that is known to be in a map. A key that is not is a bug: throws. */
export function valueAt                                   (map                                , key   )    {
  const value = map.get(key);
  if (value === undefined) throw new Error(`no value of ${String(key)}`);
  return value;
}
