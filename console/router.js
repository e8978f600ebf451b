import { computed, signal } from '@preact/signals';

const hash = signal(location.hash);
addEventListener('hashchange', () => {
  hash.value = location.hash;
});

/** The page in the address: `#/jobs/<id>?status=failed` has the parts `['jobs', '<id>']` and the query `status=failed`. */
export const route = computed(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?');
  return { parts: partsOf(path), query: new URLSearchParams(query) };
});

/** Returns the decoded parts of a path. One that cannot be decoded is one part, which no page has for a name. @param {string} path */
function partsOf(path) {
  try {
    return path
      .split('/')
      .filter((part) => part !== '')
      .map(decodeURIComponent);
  } catch {
    return [path];
  }
}

/**
 * Returns the link to a page.
 * @param {readonly string[]} parts
 * @param {Record<string, string>} [query] empty values are left out
 */
export function linkTo(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== '');
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`;
  return `#/${parts.map(encodeURIComponent).join('/')}${search}`;
}
