// A consent page of our own: a provider that knows one client only cannot ask for each of ours (the
// "confused deputy" of the MCP specification).

import { fail } from '../../errors/gateway-error.ts';
import {
  createRedirectReply,
  type PendingReply,
  type Reply,
  type RequestBody,
} from '../../http/endpoint/message.ts';
import type { Browser } from '../../http/endpoint/own-pages.ts';
import { createNameCheck, failRequest, parseBody } from '../../http/endpoint/parameters.ts';
import { generateSecret, isEqualSecret } from '../../platform/ids.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createSecretRecords, type SealedStore } from '../../store/records.ts';
import type { Parties } from '../parties.ts';
import { addToRedirectUri } from '../redirect-uri.ts';
import type {
  AuthorizationRequest,
  ReadAuthorizationRequest,
} from '../request/authorization-request.ts';
import { addFacts, readAskedFacts } from '../request/login-facts.ts';
import type { Approval } from './browser.ts';
import { type ListShownTools, renderConsentPage } from './consent-page.ts';

/** Once the user has approved, the browser goes on to the provider. Without `approval` nobody was to be asked. */
export type RedirectToProvider = (
  request: AuthorizationRequest,
  browser: Browser,
  approval?: Approval,
) => Promise<Reply>;

/** The part of a mode that users are asked for. `issuer` is the `iss` of replies to clients (RFC 9207). */
interface AskingMode {
  readonly readRequest: ReadAuthorizationRequest;
  readonly redirectToProvider: RedirectToProvider;
  readonly issuer?: string;
}

/** Fields of the page's form. */
const checkFieldName = createNameCheck(['request', 'csrf', 'decision']);

/** Characters. A page leaves a record, and anybody may ask for one. */
const MAX_QUERY = 4096;

/** `listTools` has those that everybody may see; undefined where strangers see none. */
export function createConsent(
  { config: { server, oauth } }: Runtime,
  records: SealedStore,
  { browsers, approvals, listScopes }: Parties,
  { readRequest, redirectToProvider, issuer }: AskingMode,
  listTools: ListShownTools | undefined,
) {
  const { baseUrl, displayName } = server;
  const pendingConsents = createSecretRecords<PendingConsent>(records, 'question', TTL_SECONDS);

  async function showPage(request: AuthorizationRequest, browser: Browser): Promise<Reply> {
    const { client, query, redirectUri, parameters } = request;
    // The provider knows such a client itself, and asks for it by its own name.
    if (client === undefined) return redirectToProvider(request, browser);
    const csrf = generateSecret();
    const page = renderConsentPage({
      service: displayName,
      client,
      redirectUri,
      scopes: listScopes(parameters.get('scope')),
      tools: await listTools?.(),
      action: `${baseUrl}/oauth/consent`,
      // Two secrets, which the page's form sends back.
      request: await pendingConsents.put({ query, browser: browser.hash, csrf }),
      csrf,
    });
    return { ...page, headers: { ...page.headers, ...browser.headers } };
  }

  async function approve(request: AuthorizationRequest, browser: Browser): Promise<Reply> {
    const approval = await approvals.approve(request, browser.hash);
    // 303: the browser posted a form, and goes on with a GET.
    return { ...(await redirectToProvider(request, browser, approval)), status: 303 };
  }

  function deny({ redirectUri, parameters }: AuthorizationRequest): Reply {
    const error = { key: 'access_denied', message: 'The user denied the request.' };
    const url = addToRedirectUri(redirectUri, [
      ['error', error.key],
      ['error_description', error.message],
      ['state', parameters.get('state')],
      ['iss', issuer],
    ]);
    return { ...createRedirectReply(url), error };
  }

  return {
    async authorize(query: string, cookie: string | undefined): Promise<PendingReply> {
      if (query.length > MAX_QUERY)
        failRequest(`The query is longer than ${MAX_QUERY} characters.`);
      const request = await readRequest(query, cookie);
      // With the provider's own client everybody would get past this page.
      if (isSameClient(request.clientId, oauth.providerClient.id)) fail('unknown_client');
      return async function continueLogin() {
        const browser = browsers.getOrCreate(cookie);
        const approval = await approvals.find(request, browser.hash);
        return approval === undefined
          ? showPage(request, browser)
          : redirectToProvider(request, browser, approval);
      };
    },

    /**
     * The form of the page. Its record is not used up: whoever goes back in the browser, or presses twice, may answer again. It is worth
     * something together with the browser that was shown the page.
     */
    async consent(body: RequestBody, cookie: string | undefined): Promise<PendingReply> {
      const form = parseBody(body, checkFieldName);
      const secret = form.require('request');
      const csrf = form.require('csrf');
      const pending = await pendingConsents.get(secret);
      if (pending === undefined)
        return failRequest('This page has expired. Log in again from your app.');
      if (pending.browser !== browsers.readHash(cookie) || !isEqualSecret(pending.csrf, csrf))
        failRequest(
          'This page was opened in another browser, or cookies are turned off. Turn on cookies and log in again from your app.',
        );
      const { query } = pending;
      return addFacts(readAskedFacts(query), async () => {
        // Once more: the client may have ended meanwhile.
        const request = await readRequest(query, cookie);
        // Typed where there is no JavaScript.
        const isApproved = form.get('decision')?.trim().toLowerCase() === 'approve';
        return () => (isApproved ? approve(request, browsers.getOrCreate(cookie)) : deny(request));
      });
    },
  };
}

/** Some providers compare client ids without case, and trim them. */
const isSameClient = (one: string, other = '') =>
  one.trim().toLowerCase() === other.trim().toLowerCase();

/** A consent page that waits for its user: everything that the decision needs. */
interface PendingConsent {
  readonly query: string;
  /** Hash of the browser's cookie: an approval in another one is worth nothing. */
  readonly browser: string;
  readonly csrf: string;
}

const TTL_SECONDS = 600;
