// A process of the gateway in broker mode whose public address is that of something in front of it.
import { closeAfterTest } from '../lifetimes.ts';
import { startProvider } from '../oauth/provider.ts';
import { startPostern } from './process.ts';

/** The test's own server is in front, at the public address. */
export async function startBrokerBehind(
  publicUrl: string,
  port: number,
  /** That the provider was told of, where that is another. */
  registeredUrl = publicUrl,
): Promise<void> {
  const provider = closeAfterTest(await startProvider({ gatewayUrl: registeredUrl }));
  await startPostern({
    ...provider.env,
    OAUTH_MODE: 'broker',
    CIMD_ALLOWED_HOSTS: 'none',
    PORT: String(port),
    BASE_URL: publicUrl,
  });
}
