// Requests of the playground, recorded as they are sent and answered, so that the page can show them.

/** A request as it is sent. Tokens are named in place of their values: `$TOKEN`. */
export interface ShownRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export interface ShownResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Of a stream what has come so far. */
  body: string;
  /** Milliseconds until its head came. */
  readonly ms: number;
}

/** One step, as the page shows it. */
export interface Exchange {
  readonly id: number;
  readonly title: string;
  /** What it is for. */
  readonly note: string;
  readonly request: ShownRequest;
  /** The browser itself goes there, and leaves this page. No page reads the answer to that. */
  readonly isVisit?: true;
  response: ShownResponse | undefined;
  /** Of a visit: the address at which the browser came back. */
  cameBackAt?: string;
  /** Why there is no answer. */
  failure: string | undefined;
}

export interface Step {
  readonly title: string;
  readonly note?: string;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** In place of `body`, where that holds secrets: `body` is what is shown then. */
  readonly sentBody?: string;
  readonly signal?: AbortSignal;
  /** What is shown of the answer, where it holds secrets. */
  readonly hide?: (body: string) => string;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  text(): Promise<string>;
  /** The body piece by piece. */
  chunks(): AsyncGenerator<string>;
}

/** @throws Error in words for the user when nothing answers. */
export type Send = (step: Step) => Promise<Answer>;

export interface SenderDeps {
  /** Shows a step, and returns it as what is written to from then on. */
  show(exchange: Exchange): Exchange;
  /** Undefined before the login. */
  getToken(): Promise<string | undefined>;
  /** The gateway refused the token: whether there is another one by now. */
  replaceToken(token: string): Promise<boolean>;
}

let lastId = 0;

/** Steps of this tab before it left the page, which began to count anew since then. */
export function restoreExchanges(exchanges: readonly Exchange[]): Exchange[] {
  lastId = Math.max(lastId, ...exchanges.map(({ id }) => id));
  return exchanges.map((exchange) => ({ ...exchange }));
}

/** The step by which the browser leaves for the login page. */
export function createVisit(title: string, note: string, url: string): Exchange {
  lastId += 1;
  return {
    id: lastId,
    title,
    note,
    request: { method: 'GET', url, headers: {}, body: undefined },
    isVisit: true,
    response: undefined,
    failure: undefined,
  };
}

/** The sender knows the token; steps do not, and nothing that is shown has it. */
export function createSend({ show, getToken, replaceToken }: SenderDeps): Send {
  async function sendOnce(step: Step, token: string | undefined): Promise<Answer> {
    const { title, note = '', hide = (body: string) => body } = step;
    const shown: Record<string, string> = { ...step.headers };
    const headers = new Headers(step.headers);
    if (token !== undefined) headers.set('Authorization', `Bearer ${token}`);
    lastId += 1;
    const exchange = show({
      id: lastId,
      title,
      note,
      request: { method: step.method, url: step.url, headers: shown, body: step.body },
      response: undefined,
      failure: undefined,
    });
    const startedAt = performance.now();
    const response = await fetch(step.url, {
      method: step.method,
      headers,
      body: step.sentBody ?? step.body ?? null,
      signal: step.signal ?? null,
      cache: 'no-store',
      credentials: 'omit',
    }).catch((cause: unknown) => {
      exchange.failure = describeFailure(cause);
      throw new Error(exchange.failure);
    });
    exchange.response = {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: '',
      ms: Math.round(performance.now() - startedAt),
    };
    const answered = exchange.response;

    async function* chunks(): AsyncGenerator<string> {
      if (response.body === null) return;
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      try {
        for (let read = await reader.read(); !read.done; read = await reader.read()) {
          answered.body += read.value;
          yield read.value;
        }
      } catch (cause) {
        exchange.failure = describeFailure(cause);
        throw new Error(exchange.failure);
      } finally {
        reader.cancel().catch(() => {});
      }
    }

    return {
      status: response.status,
      headers: response.headers,
      async text() {
        const text = await response.text();
        answered.body = hide(text);
        return text;
      },
      chunks,
    };
  }

  return async function send(step) {
    const needsToken = step.headers?.Authorization === WITH_TOKEN.Authorization;
    const token = needsToken ? await getToken() : undefined;
    const answer = await sendOnce(step, token);
    if (answer.status !== 401 || token === undefined) return answer;
    // A call that is refused has not run, so it can be sent again.
    if (!(await replaceToken(token))) return answer;
    await answer.text();
    return sendOnce(step, await getToken());
  };
}

const describeFailure = (cause: unknown): string =>
  cause instanceof DOMException && cause.name === 'AbortError'
    ? 'Cancelled.'
    : 'The gateway did not answer. Is it running, and can this browser reach it?';

/** For the header of a step that needs the token. */
export const WITH_TOKEN = { Authorization: 'Bearer $TOKEN' } as const;

/** What is shown of a refresh token. */
export const REFRESH_TOKEN = '$REFRESH_TOKEN';
