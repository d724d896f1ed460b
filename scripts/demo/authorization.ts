// The parts that the official client requires from its host: memory for one login, and a browser.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js';
import type {
  OAuthClientInformationMixed,
  OAuthTokens,
} from '@modelcontextprotocol/sdk/shared/auth.js';
import type { Callback } from './callback.ts';
import { logInAs, type NoteRequest } from './login.ts';

export interface Authorization extends OAuthClientProvider {
  /** The code that the browser brought back. @throws Error when it brought none. */
  waitForCode(): Promise<string>;
}

const MINUTE_MS = 60_000;

export interface AuthorizationOptions {
  readonly callback: Callback;
  /** The name to log in with at the development provider. */
  readonly name: string;
  readonly printLine: (line: string) => void;
  readonly noteRequest: NoteRequest;
  /** How long a person may take to log in. */
  readonly patienceMinutes?: number;
  /** Where a person logs in. */
  readonly openPage?: (url: URL) => void;
}

export function createAuthorization(options: AuthorizationOptions): Authorization {
  const { callback, name, printLine, noteRequest } = options;
  const { patienceMinutes = 5, openPage = openBrowser } = options;
  const state = randomBytes(16).toString('base64url');
  let client: OAuthClientInformationMixed | undefined;
  let tokens: OAuthTokens | undefined;
  let verifier = '';
  let returned: Promise<URL> | undefined;

  async function logIn(url: URL): Promise<URL> {
    const back = await logInAs(name, url, callback.redirectUri, noteRequest);
    if (back !== undefined) return back;
    printLine(`Log in with your browser. This waits ${patienceMinutes} minutes for it:`);
    printLine(url.href);
    openPage(url);
    return Promise.race([callback.visited, giveUpAfter(patienceMinutes)]);
  }

  return {
    redirectUrl: callback.redirectUri,
    clientMetadata: {
      client_name: 'Postern demo',
      redirect_uris: [callback.redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    state: () => state,
    clientInformation: () => client,
    saveClientInformation(information) {
      client = information;
      printLine(`registered as ${information.client_id}`);
    },
    tokens: () => tokens,
    saveTokens(received) {
      tokens = received;
      printLine(describeTokens(received));
    },
    saveCodeVerifier(received) {
      verifier = received;
    },
    codeVerifier: () => verifier,
    redirectToAuthorization(url) {
      returned = logIn(url);
      // Awaited in waitForCode(); until then a failure must not count as unhandled.
      returned.catch(() => {});
    },
    async waitForCode() {
      const parameters = (await returned)?.searchParams;
      if (parameters?.get('state') !== state)
        throw new Error('The browser came back without state.');
      const code = parameters.get('code');
      if (code !== null) return code;
      const reason = parameters.get('error_description') ?? parameters.get('error');
      throw new Error(`The provider refused the login: ${reason}`);
    },
  };
}

const giveUpAfter = (minutes: number): Promise<never> =>
  new Promise((_resolve, reject) => {
    const message = `Nobody logged in within ${minutes} minutes. Run the demo again, and open the address that it prints.`;
    setTimeout(() => reject(new Error(message)), minutes * MINUTE_MS).unref();
  });

/** Only the first characters of a token: the rest is a secret. */
const describeTokens = ({ access_token, expires_in, refresh_token }: OAuthTokens): string =>
  `access token ${access_token.slice(0, 10)}… (${access_token.length} characters, ${expires_in} s)` +
  (refresh_token === undefined ? '' : ' and a refresh token');

function openBrowser({ href }: URL): void {
  const command = process.platform === 'darwin' ? 'open' : 'xdg-open';
  const browser = spawn(command, [href], { stdio: 'ignore', detached: true });
  // No browser to open: the address is printed, too.
  browser.on('error', () => {});
  browser.unref();
}
