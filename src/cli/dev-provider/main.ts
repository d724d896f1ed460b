// Runs the development provider on its own, for gateways that run elsewhere (compose.yaml). It gets the gateway's settings, so
// that its tokens are valid there.
import { createServer } from 'node:http';
import { loadConfig } from '../../config/load.ts';
import { describeListenError, endWithError, StartError } from '../command-line/errors.ts';
import { createProviderOf } from './provider.ts';

async function run() {
  if (process.env.NODE_ENV === 'production')
    throw new StartError(
      'NODE_ENV: the development provider accepts anyone and is not for production. Set NODE_ENV=development, or OIDC_ISSUER to your own provider.',
    );
  const config = loadConfig(process.env);
  const { server: gateway, auth, oauth } = config;
  const clientId = oauth.providerClient.id;
  if (!auth.required || clientId === undefined)
    throw new StartError(
      'OAUTH_CLIENT_ID and OIDC_ISSUER are required: use those of the gateways.',
    );
  const { issuer, audience } = auth.provider;
  const server = createServer(await createProviderOf(config, issuer, audience, clientId));
  const port = Number(new URL(issuer).port || 80);
  server.once('error', (error) =>
    fail(new StartError(describeListenError(error, { host: gateway.host, port }))),
  );
  server.listen(port, gateway.host);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => process.exit(0));
}

const fail = (error: unknown) => endWithError(error, { process, console });

run().catch(fail);
