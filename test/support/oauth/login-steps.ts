// A login through a broker-mode gateway, one step at a time: what a browser and a client send.
import { createHash, randomBytes } from 'node:crypto';
import type { TestGateway, TestResponse } from '../gateway/gateway.ts';

export const REDIRECT = 'https://client.example/callback';
export const STATE = 'the client’s own state';

export interface Client {
  readonly id: string;
  readonly verifier: string;
  readonly challenge: string;
}

/** The consent page as a browser has it. */
export interface Question {
  readonly cookie: string;
  readonly form: Readonly<Record<string, string>>;
}

type Change = Readonly<Record<string, string | undefined>>;

export function createLoginSteps(gateway: Pick<TestGateway, 'request'>) {
  const get = (path: string, cookie?: string, accept?: string): Promise<TestResponse> =>
    gateway.request({
      path,
      headers: { ...(cookie && { cookie }), ...(accept && { accept }) },
    });
  const post = (path: string, form: Change, cookie?: string): Promise<TestResponse> =>
    gateway.request({
      method: 'POST',
      path,
      body: new URLSearchParams(present(form)),
      headers: cookie === undefined ? {} : { cookie },
    });

  const steps = {
    get,
    post,
    async register(metadata: object = {}): Promise<Client> {
      const body = { redirect_uris: [REDIRECT], client_name: 'Test', ...metadata };
      const answer = await gateway.request({ method: 'POST', path: '/oauth/register', body });
      if (answer.status !== 201) throw new Error(answer.text);
      return { id: answer.json.client_id, ...newPkce() };
    },
    authorize(
      client: Client,
      change: Change = {},
      cookie?: string,
      accept?: string,
    ): Promise<TestResponse> {
      const query = new URLSearchParams(
        present({
          client_id: client.id,
          redirect_uri: REDIRECT,
          response_type: 'code',
          state: STATE,
          scope: 'openid profile',
          code_challenge: client.challenge,
          code_challenge_method: 'S256',
          ...change,
        }),
      );
      return get(`/oauth/authorize?${query}`, cookie, accept);
    },
    async ask(client: Client, change: Change = {}, cookie?: string): Promise<Question> {
      return questionOf(await steps.authorize(client, change, cookie));
    },
    decide: (question: Question, decision = 'approve', cookie = question.cookie) =>
      post('/oauth/consent', { ...question.form, decision }, cookie),
    /** As far as the provider: what it is asked. */
    async approve(client: Client, change: Change = {}) {
      const question = await steps.ask(client, change);
      const { status, headers, text } = await steps.decide(question);
      if (status !== 303) throw new Error(`The approval was answered ${status}: ${text}`);
      return { cookie: question.cookie, asked: new URL(headers.location ?? '') };
    },
    callback: (parameters: Change, cookie?: string) =>
      get(`/oauth/callback?${new URLSearchParams(present(parameters))}`, cookie),
    /** As far as the client: the address it is called back at. */
    async logIn(client: Client, change: Change = {}, code = 'provider-code'): Promise<URL> {
      const { cookie, asked } = await steps.approve(client, change);
      const state = asked.searchParams.get('state') ?? '';
      const { status, headers, text } = await steps.callback({ code, state }, cookie);
      if (status !== 303) throw new Error(`The callback was answered ${status}: ${text}`);
      return new URL(headers.location ?? '');
    },
    redeem: (client: Client, back: URL, change: Change = {}) =>
      post('/oauth/token', {
        grant_type: 'authorization_code',
        client_id: client.id,
        code: back.searchParams.get('code') ?? '',
        redirect_uri: REDIRECT,
        code_verifier: client.verifier,
        ...change,
      }),
    refresh: (client: Client, refreshToken: string, change: Change = {}) =>
      post('/oauth/token', {
        grant_type: 'refresh_token',
        client_id: client.id,
        refresh_token: refreshToken,
        ...change,
      }),
  };
  return steps;
}

export function questionOf({ status, headers, text }: TestResponse): Question {
  if (status !== 200) throw new Error(`No consent page: ${status} ${text}`);
  const fields = text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]+)">/g);
  const cookie = headers['set-cookie']?.toString().split(';')[0] ?? '';
  return { cookie, form: Object.fromEntries([...fields].map(([, name, value]) => [name, value])) };
}

export function newPkce() {
  const verifier = randomBytes(32).toString('base64url');
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') };
}

const present = (change: Change): Record<string, string> =>
  Object.fromEntries(
    Object.entries(change).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
