// §22.5: the login of the operators' page. Its token is kept separate from the playground's: no server behind the gateway
// ever gets it.
import { reactive, readonly } from 'vue';

const state = reactive<{ isLoggedIn: boolean; notice: string | undefined }>({
  isLoggedIn: false,
  notice: undefined,
});

/** In memory only, and in nothing that is shown. */
let token: string | undefined;

export const operator = readonly(state);

export function keepOperatorToken(accessToken: string): void {
  token = accessToken;
  state.isLoggedIn = true;
  state.notice = undefined;
}

/** `notice` is why, where the operator did not say so. */
export function logOutOperator(notice?: string): void {
  token = undefined;
  state.isLoggedIn = false;
  state.notice = notice;
}

export type Method = 'GET' | 'POST' | 'DELETE';

/** `body` is sent as JSON. @throws Error when nothing answers. */
export const fetchAsOperator = (url: string, method: Method, body?: object): Promise<Response> =>
  fetch(url, {
    method,
    cache: 'no-store',
    headers: {
      Authorization: `Bearer ${token ?? ''}`,
      ...(body && { 'Content-Type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
