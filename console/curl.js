import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { addressOf, call, loginNeeded } from './api.js';

/** True where the service asks callers for a token. */
const needsToken = signal(false);

/**
 * Returns a function that writes a request as a command for a shell. If the service asks for a token, the command takes it from
 * a variable: the page does not know it.
 */
export function useCurl() {
  const login = loginNeeded.value;
  useEffect(() => {
    call('GET', 'v2/session').then(
      ({ login_required: required }) => {
        needsToken.value = required;
      },
      // The page says by itself that the service is out of reach, or asks for a login.
      () => undefined,
    );
  }, [login]);
  const headers = ["-H 'content-type: application/json'"];
  if (needsToken.value) headers.unshift('-H "Authorization: Bearer $ATTESTREAM_TOKEN"');
  return (/** @type {string} */ path, /** @type {string} */ json) =>
    [`curl -s ${addressOf(path)}`, ...headers, `-d '${json.replaceAll("'", "'\\''")}'`].join(' \\\n  ');
}
