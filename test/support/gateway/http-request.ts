import type { TestGateway } from './gateway.ts';

/** Asks what listens at `baseUrl`, with `further` headers; redirects are answers. */
export const createHttpRequest =
  (baseUrl: string, further: Readonly<Record<string, string>> = {}): TestGateway['request'] =>
  async ({ method = 'GET', path, headers, body }) => {
    const isForm = body instanceof URLSearchParams;
    const answer = await fetch(`${baseUrl}${path}`, {
      method,
      redirect: 'manual',
      headers: {
        ...(body !== undefined && !isForm && { 'content-type': 'application/json' }),
        ...headers,
        ...further,
      },
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    return {
      status: answer.status,
      headers: Object.fromEntries(answer.headers),
      text,
      get json() {
        return JSON.parse(text);
      },
    };
  };
