// Consent of our own: a provider that knows one client only cannot ask for each of ours (the
// confused deputy of the MCP specification).
import { timingSafeEqual } from 'node:crypto';
import { fail } from '../../../core/errors/gateway-error.ts';
import type { PendingReply, Reply, RequestBody } from '../../../core/message.ts';
import { hashOf, newSecret } from '../../../core/seal/seal.ts';
import { oauthKey } from '../../../core/store/keys.ts';
import { type AuthorizationRequest, readAuthorizationRequest } from '../authorization-request.ts';
import type { Clients } from '../clients.ts';
import { fromBody } from '../parameters.ts';
import { redirectBack } from '../redirect-back.ts';
import { createSealedRecords, type RecordsDeps } from '../sealed-records.ts';
import type { Browser, Browsers } from './browser.ts';
import { consentPage } from './consent-page.ts';

/** What happens after the approval. */
export type Proceed = (request: AuthorizationRequest, browser: Browser) => Promise<Reply>;

export interface ConsentSettings {
  readonly baseUrl: string;
  readonly oauthConsentTtlSeconds: number;
  readonly oauthClientId: string | undefined;
  /** The scopes that the provider will be asked for. */
  readonly scopesOf: (scope: string | undefined) => readonly string[];
  /** `iss` of replies to clients (RFC 9207), where the service is its own issuer. */
  readonly issuer: string | undefined;
}

export interface Consent {
  authorize(query: string, cookie: string | undefined): Promise<PendingReply>;
  /** The form of the page. */
  decide(body: RequestBody, cookie: string | undefined): Promise<PendingReply>;
}

/** A question that is open: everything that its answer needs. */
interface Question {
  readonly query: string;
  /** Hash of the browser's cookie: an approval in another one is worth nothing. */
  readonly browser: string;
  readonly csrf: string;
}

const QUESTION_TTL_SECONDS = 600;
/** Characters. Questions are kept, and anybody may make them. */
const MAX_QUERY = 4096;

export function createConsent(
  settings: ConsentSettings,
  clients: Clients,
  browsers: Browsers,
  records: RecordsDeps,
  proceed: Proceed,
): Consent {
  const questions = createSealedRecords<Question>(records, 'question', QUESTION_TTL_SECONDS);
  const { store } = records;
  const { baseUrl, oauthConsentTtlSeconds: rememberedSeconds, issuer } = settings;

  /** Per browser, client, redirect URI and scopes: whatever is new is asked anew. */
  const sorted = (scope: string | undefined) => [...new Set(settings.scopesOf(scope))].sort();
  const approvalKey = (
    { clientId, redirectUri, parameters }: AuthorizationRequest,
    browser: string,
  ) =>
    oauthKey(
      'approval',
      hashOf(JSON.stringify([browser, clientId, redirectUri, sorted(parameters.get('scope'))])),
    );

  const isRemembered = async (request: AuthorizationRequest, browser: string) =>
    rememberedSeconds > 0 && (await store.get(approvalKey(request, browser))) !== undefined;

  async function ask(request: AuthorizationRequest, browser: Browser): Promise<Reply> {
    const { client, query, redirectUri, parameters } = request;
    // The provider knows such a client itself, and asks for it by its own name.
    if (client === undefined) return proceed(request, browser);
    const csrf = newSecret();
    const page = consentPage({
      client,
      redirectUri,
      scopes: settings.scopesOf(parameters.get('scope')),
      action: `${baseUrl}/oauth/consent`,
      request: await questions.put({ query, browser: browser.hash, csrf }),
      csrf,
    });
    return { ...page, headers: { ...page.headers, ...browser.headers } };
  }

  /** Not used up: whoever goes back in the browser, or presses twice, may answer again. */
  async function questionOf(secret: string, csrf: string, cookie: string | undefined) {
    const question = await questions.get(secret);
    if (question === undefined) {
      fail('oauth_invalid_request', {
        details: 'This page has expired. Start again from your program.',
      });
    }
    if (question.browser !== browsers.hashOf(cookie) || !isEqual(question.csrf, csrf)) {
      fail('oauth_invalid_request', {
        details: 'This approval belongs to another browser, or cookies are switched off.',
      });
    }
    return question;
  }

  async function approve(request: AuthorizationRequest, browser: Browser): Promise<Reply> {
    if (rememberedSeconds > 0) {
      await store.set(approvalKey(request, browser.hash), '1', rememberedSeconds);
    }
    // 303: the browser posted a form, and goes on with a GET.
    return { ...(await proceed(request, browser)), status: 303 };
  }

  return {
    async authorize(query, cookie) {
      if (query.length > MAX_QUERY) {
        fail('oauth_invalid_request', {
          details: `The query is longer than ${MAX_QUERY} characters.`,
        });
      }
      const request = await readAuthorizationRequest(query, clients);
      // By the provider's own client everybody would come past the question.
      if (request.clientId === settings.oauthClientId) fail('unknown_client');
      checkScope(request.parameters.get('scope'));
      return async function answer() {
        const browser = browsers.of(cookie);
        return (await isRemembered(request, browser.hash))
          ? proceed(request, browser)
          : ask(request, browser);
      };
    },

    async decide(body, cookie) {
      const form = fromBody(body);
      const { query } = await questionOf(form.require('request'), form.require('csrf'), cookie);
      // Once more: the client may have ended meanwhile.
      const request = await readAuthorizationRequest(query, clients);
      return () =>
        form.get('decision') === 'approve' ? approve(request, browsers.of(cookie)) : deny(request);
    },
  };

  function deny({ redirectUri, parameters }: AuthorizationRequest): Reply {
    return redirectBack(redirectUri, [
      ['error', 'access_denied'],
      ['error_description', 'The user denied it.'],
      ['state', parameters.get('state')],
      ['iss', issuer],
    ]);
  }
}

/** RFC 6749 §3.3: whoever reads the page must see what the provider reads. */
function checkScope(scope: string | undefined): void {
  if (scope === undefined || /^[\x21\x23-\x5B\x5D-\x7E]+( [\x21\x23-\x5B\x5D-\x7E]+)*$/.test(scope))
    return;
  fail('oauth_invalid_request', {
    details: 'scope must be a list of words with one space between.',
  });
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}
