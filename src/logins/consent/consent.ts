// The gateway's own consent page: a provider that knows only one client cannot ask for consent to each of the gateway's clients (the
// "confused deputy" of the MCP specification).

import { fail } from '../../errors/gateway-error.ts';
import type { JudgedRequest } from '../../http/endpoint/endpoint.ts';
import {
  createRedirectReply,
  type GatewayRequest,
  getHeader,
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

/** Sends an approved request's browser to the provider. Without `approval` there was no consent page. */
export type RedirectToProvider = (
  request: AuthorizationRequest,
  browser: Browser,
  approval?: Approval,
) => Promise<Reply>;

/** The part of a mode that the consent page needs. `issuer` is the `iss` of replies to clients (RFC 9207). */
interface AskingMode {
  readonly readRequest: ReadAuthorizationRequest;
  readonly redirectToProvider: RedirectToProvider;
  readonly issuer?: string;
}

/** Fields of the page's form. */
const checkFieldName = createNameCheck(['request', 'csrf', 'decision']);

/** `postern doctor` recognizes replicas with different secrets by this sentence. */
export const PAGE_EXPIRED = 'This page has expired. Log in again from your app.';

/** Characters. Each page leaves a record, and anybody may request one. */
const MAX_QUERY = 4096;

/** `listTools` has those that everybody may see; undefined if strangers see none. */
export function createConsent(
  runtime: Runtime & SealedStore,
  { browsers, approvals, listScopes }: Parties,
  { readRequest, redirectToProvider, issuer }: AskingMode,
  listTools: ListShownTools | undefined,
) {
  const { server, oauth } = runtime.config;
  const { baseUrl, displayName } = server;
  const pendingConsents = createSecretRecords<PendingConsent>(runtime, 'question', TTL_SECONDS);

  async function showPage(request: AuthorizationRequest, browser: Browser): Promise<Reply> {
    const { client, query, redirectUri, parameters } = request;
    // The provider knows such a client itself, and asks for consent under the client's own name.
    if (client === undefined) return redirectToProvider(request, browser);
    const csrf = generateSecret();
    const page = renderConsentPage({
      service: displayName,
      client,
      redirectUri,
      scopes: listScopes(parameters.get('scope')),
      tools: await listTools?.(),
      action: `${baseUrl}/oauth/consent`,
      // Two secrets, which the form sends back.
      request: await pendingConsents.put({ query, browser: browser.hash, csrf }),
      csrf,
    });
    return { ...page, headers: { ...page.headers, ...browser.headers } };
  }

  async function approve(request: AuthorizationRequest, browser: Browser): Promise<Reply> {
    const approval = await approvals.approve(request, browser.hash);
    // 303: the browser posted a form, and continues with a GET.
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
    async authorize({ query, headers }: GatewayRequest): Promise<PendingReply> {
      const cookie = getHeader({ headers }, 'cookie');
      if (query.length > MAX_QUERY)
        failRequest(`The query is longer than ${MAX_QUERY} characters.`);
      const request = await readRequest(query, cookie);
      // With the provider's own client, everybody would get past this page.
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
     * Handles the form of the page. The record is not used up: a user who goes back in the browser, or clicks twice, may answer again. It
     * is valid only in the browser that was shown the page.
     */
    async consent({ headers }: GatewayRequest, body: RequestBody): Promise<JudgedRequest> {
      const cookie = getHeader({ headers }, 'cookie');
      const form = parseBody(body, checkFieldName);
      const secret = form.require('request');
      const csrf = form.require('csrf');
      const pending = await pendingConsents.get(secret);
      if (pending === undefined) return failRequest(PAGE_EXPIRED);
      if (pending.browser !== browsers.readHash(cookie) || !isEqualSecret(pending.csrf, csrf))
        failRequest(
          'This page was opened in another browser, or cookies are turned off. Turn on cookies and log in again from your app.',
        );
      const { query } = pending;
      return addFacts(readAskedFacts(query), decide());

      async function decide() {
        // Checked again: the client may have ended meanwhile.
        const request = await readRequest(query, cookie);
        // Without JavaScript the user types the decision.
        const isApproved = form.get('decision')?.trim().toLowerCase() === 'approve';
        return () => (isApproved ? approve(request, browsers.getOrCreate(cookie)) : deny(request));
      }
    },
  };
}

/** Some providers compare client IDs without case, and trim them. */
const isSameClient = (one: string, other = '') =>
  one.trim().toLowerCase() === other.trim().toLowerCase();

/** A consent page that waits for its user: everything that the decision needs. */
interface PendingConsent {
  readonly query: string;
  /** Hash of the browser's cookie: the record is worthless in another one. */
  readonly browser: string;
  readonly csrf: string;
}

const TTL_SECONDS = 600;
