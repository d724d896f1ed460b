// Logins in proxy mode at a provider that gives a new refresh token at every refresh.
import type { Broker } from '../../support/oauth/broker.ts';
import { type Client, REDIRECT } from '../../support/oauth/login-steps.ts';

export interface Login {
  readonly client: Client;
  readonly refreshToken: string;
  /** What the provider was asked until now. */
  readonly asked: number;
}

let serial = 0;

/** A provider that rotates refresh tokens, each access token good for five minutes. */
export async function rotate(broker: Broker, change: object = {}): Promise<void> {
  broker.upstream.answer(
    (res) =>
      void broker.sign({ jti: `${serial++}` }).then((access) =>
        res.end(
          JSON.stringify({
            access_token: access,
            token_type: 'Bearer',
            expires_in: 300,
            refresh_token: `r-${serial}`,
            ...change,
          }),
        ),
      ),
  );
}

export async function logInByCode({ steps, asked }: Broker): Promise<Login> {
  const client = await steps.register();
  const back = new URL(`${REDIRECT}?code=provider-code`);
  const { status, json, text } = await steps.redeem(client, back);
  if (status !== 200) throw new Error(text);
  return { client, refreshToken: json.refresh_token, asked: asked() };
}
