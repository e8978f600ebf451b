import type { Handle, PKCS11 } from 'pkcs11js';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { SettingsOf } from './device-key.ts';
import { tryPin } from './pin-attempts.ts';
import { isPinWrong, nameOf } from './pkcs11-problems.ts';

// Constants of PKCS #11, version 2.40.
const CKF_LOGIN_REQUIRED = 0x4;
const CKF_SERIAL_SESSION = 0x4;
const CKF_USER_PIN_FINAL_TRY = 0x20000;
const CKF_USER_PIN_LOCKED = 0x40000;
const CKU_USER = 1;
const CKS_USER_STATES: readonly number[] = [1, 3];
const CKA_CLASS = 0x0;
const CKA_LABEL = 0x3;
const CKA_KEY_TYPE = 0x100;
export const OBJECT_CLASS = { publicKey: 2, privateKey: 3 } as const;

/** A session with the handle of the key in it. */
export interface KeySession {
  readonly session: Handle;
  readonly key: Handle;
  readonly keyType: number;
}

/** A token by its label, and a private key in it. Its calls block. */
export class Pkcs11Token {
  readonly #module: PKCS11;
  readonly #settings: SettingsOf<'pkcs11'>;
  readonly #stateDir: string;
  readonly device: string;

  constructor(module: PKCS11, settings: SettingsOf<'pkcs11'>, stateDir: string) {
    this.#module = module;
    this.#settings = settings;
    this.#stateDir = stateDir;
    this.device = `the token "${settings.token}"`;
  }

  /** Opens a session, logs in where that is needed, and finds the key. Not to be called concurrently: one of the calls logs in. */
  async openSession(): Promise<KeySession> {
    const { slot, flags } = this.#find();
    const session = this.#module.C_OpenSession(slot, CKF_SERIAL_SESSION);
    try {
      const isLoggedIn = CKS_USER_STATES.includes(this.#module.C_GetSessionInfo(session).state);
      if ((flags & CKF_LOGIN_REQUIRED) !== 0 && !isLoggedIn) await this.#logIn(session, flags);
      const key = this.findObject(session, OBJECT_CLASS.privateKey);
      const [type] = this.#module.C_GetAttributeValue(session, key, [{ type: CKA_KEY_TYPE }]);
      return { session, key, keyType: type?.value.readUInt32LE() ?? -1 };
    } catch (error) {
      this.#module.C_CloseSession(session);
      throw error;
    }
  }

  /** Finds the only object of a class with the label of the key. Throws `SIGNER_KEY_MISSING` or `SIGNER_KEY_AMBIGUOUS`. */
  findObject(session: Handle, objectClass: number): Handle {
    const { key } = this.#settings;
    const template = [
      { type: CKA_CLASS, value: objectClass },
      { type: CKA_LABEL, value: key },
    ];
    this.#module.C_FindObjectsInit(session, template);
    const found = this.#module.C_FindObjects(session, 2);
    this.#module.C_FindObjectsFinal(session);
    if (found.length === 1) return itemAt(found, 0);
    const reason = found.length === 0 ? 'SIGNER_KEY_MISSING' : 'SIGNER_KEY_AMBIGUOUS';
    throw new AppError(reason, { key, device: this.device });
  }

  #find(): { readonly slot: Handle; readonly flags: number } {
    const labels: string[] = [];
    for (const slot of this.#module.C_GetSlotList(true)) {
      const { label, flags } = this.#module.C_GetTokenInfo(slot);
      // Labels are padded to 32 characters.
      if (label.trimEnd() === this.#settings.token) return { slot, flags };
      labels.push(`"${label.trimEnd()}"`);
    }
    const problem = `its module shows no such token, but ${labels.length === 0 ? 'none at all' : labels.join(', ')}`;
    throw new AppError('SIGNER_AWAY', { device: this.device, problem });
  }

  async #logIn(session: Handle, flags: number): Promise<void> {
    const { token, pin_path: file } = this.#settings;
    if ((flags & CKF_USER_PIN_LOCKED) !== 0) throw new AppError('SIGNER_PIN_LOCKED', { token, problem: 'is locked' });
    if ((flags & CKF_USER_PIN_FINAL_TRY) !== 0) {
      throw new AppError('SIGNER_PIN_LOCKED', { token, problem: 'locks with the next wrong PIN' });
    }
    await tryPin({ file, token, stateDir: this.#stateDir }, (pin) => {
      try {
        this.#module.C_Login(session, CKU_USER, pin);
        return 'accepted';
      } catch (error) {
        if (nameOf(error) === 'CKR_USER_ALREADY_LOGGED_IN') return 'accepted';
        if (nameOf(error) === 'CKR_PIN_LOCKED')
          throw new AppError('SIGNER_PIN_LOCKED', { token, problem: 'is locked' });
        if (isPinWrong(error)) return 'refused';
        throw error;
      }
    });
  }
}
