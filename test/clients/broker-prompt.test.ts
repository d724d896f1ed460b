// Clients say with `prompt` (OpenID Connect Core §3.1.2.1) what the provider is to show again.
import { expect, test } from 'vitest';
import { logInAs } from '../../scripts/demo/login.ts';
import { authorizationUrl, register } from '../support/gateway/process-login.ts';
import { REDIRECT_URI, startService } from '../support/gateway/service.ts';
import { useShared } from '../support/lifetimes.ts';

const service = useShared(() => startService({ mode: 'broker' }));

test.each(['login', 'consent', 'select_account', 'login select_account'])(
  '§4.6 broker: a login with prompt=%s comes back from the development provider with a code',
  async (prompt) => {
    const url = authorizationUrl(service.baseUrl, await register(service.baseUrl), { prompt });
    const back = await logInAs('ada', url, REDIRECT_URI);
    expect(back?.searchParams.get('error')).toBeNull();
    expect(back?.searchParams.get('code')).toMatch(/^[\w-]{43}$/);
  },
);
