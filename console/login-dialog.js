import { useSignal } from '@preact/signals';
import { call, loginNeeded } from './api.js';
import { html } from './html.js';

/** Asks for a token, and keeps it in a cookie that no script can read. The page goes on where it was. */
export function LoginDialog() {
  const problem = useSignal('');
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    const token = new FormData(/** @type {HTMLFormElement} */ (event.target)).get('token');
    try {
      await call('POST', 'v2/session', { body: { token } });
      loginNeeded.value = false;
    } catch (error) {
      problem.value =
        /** @type {any} */ (error).status === 401
          ? 'The service does not know this token.'
          : String(/** @type {any} */ (error).message);
    }
  };
  return html`<dialog open aria-labelledby="login-title">
    <article>
      <h2 id="login-title">Log in</h2>
      <form onSubmit=${submit}>
        <label>
          Token
          <input name="token" type="password" autocomplete="current-password" required autofocus aria-invalid=${problem.value === '' ? undefined : 'true'} aria-describedby="login-problem" />
          <small id="login-problem" role="alert">${problem.value || 'One that the operator has set in auth.tokens.'}</small>
        </label>
        <button type="submit">Log in</button>
      </form>
    </article>
  </dialog>`;
}
