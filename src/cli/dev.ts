import { loadConfig } from '../core/config/load.ts';
import { type DevProvider, startDevProvider } from './dev-provider.ts';
import { serve } from './serve.ts';
import { StartError } from './start-error.ts';

const CLIENT_ID = 'postern-dev';

/** `postern dev`: embedded store, a development provider, limits that nobody meets by hand. */
export async function dev(): Promise<void> {
  const env = process.env;
  if (env.NODE_ENV === 'production') {
    throw new StartError(['NODE_ENV: postern dev is not for production; use postern start.']);
  }
  const { port, baseUrl, dataDir } = loadConfig({ ...env, OIDC_ISSUER: 'http://localhost' });
  const provider = await openProvider(port + 1, baseUrl, dataDir);
  const config = loadConfig({
    HOST: '127.0.0.1',
    LOG_LEVEL: 'warn',
    OIDC_ISSUER: provider.issuer,
    OAUTH_AUTHORIZATION_URL: `${provider.issuer}/auth`,
    OAUTH_TOKEN_URL: `${provider.issuer}/token`,
    OAUTH_REVOCATION_URL: `${provider.issuer}/token/revocation`,
    OAUTH_CLIENT_ID: CLIENT_ID,
    DCR_RATE_LIMIT_MAX: '1000',
    OAUTH_AUTHORIZE_RATE_LIMIT_MAX: '1000',
    ...Object.fromEntries(Object.entries(env).filter(([, value]) => value !== '')),
  });
  try {
    await serve(config, provider.close);
  } catch (error) {
    await provider.close();
    throw error;
  }
  console.log(banner(config.baseUrl, provider.issuer));
}

async function openProvider(port: number, audience: string, folder: string): Promise<DevProvider> {
  try {
    return await startDevProvider({ port, audience, folder, client: { id: CLIENT_ID } });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EADDRINUSE') {
      throw new StartError([
        `PORT: the development provider needs port ${port} (PORT + 1), which is taken. Stop what listens there, or set PORT.`,
      ]);
    }
    if (code === 'ERR_MODULE_NOT_FOUND') {
      throw new StartError([
        'The development provider is missing: install it with npm ci --include=dev.',
      ]);
    }
    throw error;
  }
}

const banner = (baseUrl: string, issuer: string): string => `
  Postern is running, for development only.

  MCP URL      ${baseUrl}/mcp
  Log in       any name, no password (provider: ${issuer})
  Pages        ${baseUrl}/

  Next, in a second terminal:
    npm run demo
  Or connect a client:
    claude mcp add --transport http postern ${baseUrl}/mcp

  Ctrl+C stops it.
`;
