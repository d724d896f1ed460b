// What a person does in a browser to connect a server, by whichever door.
import type { Browser, BrowserPage } from './browser.ts';
import type { ConnectingGateway } from './connecting-gateway.ts';

/** The button of the page that says what one is about to connect. */
export const GO_ON = /^Continue$/;
export const DECLINE = /^Not now$/;

/** Opens the address and goes on as far as there are pages of the gateway that ask. */
export async function connectBy(browser: Browser, link: string): Promise<BrowserPage> {
  const page = await browser.press(await browser.open(link), GO_ON);
  if (page.status !== 200) throw new Error(`${page.url.href} (${page.status}): ${page.text}`);
  return page;
}

/** Door 3. */
export const connect = (
  { baseUrl }: Pick<ConnectingGateway, 'baseUrl'>,
  browser: Browser,
  server: string,
): Promise<BrowserPage> => connectBy(browser, `${baseUrl}/connections/${server}`);

/** As far as the authorization server sends the browser back to the gateway: that address, not yet asked for. */
export const connectAsFarAsCallback = async (
  { baseUrl }: Pick<ConnectingGateway, 'baseUrl'>,
  browser: Browser,
  server: string,
): Promise<URL> =>
  browser.pressAsFar(
    await browser.open(`${baseUrl}/connections/${server}`),
    GO_ON,
    `${baseUrl}/connections/callback/${server}`,
  );

/** The link in what a model reads. */
export function readLink(text: string): string {
  const [link] = /https?:\/\/[^\s"'<>)\]]+\/connections\/[^\s"'<>)\]]+/.exec(text) ?? [];
  if (link === undefined) throw new Error(`There is no link in: ${text}`);
  return link.replace(/[.,;]$/, '');
}
