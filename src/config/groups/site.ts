// What the pages show of this gateway.
import { flag, imageFile, imageUrl } from '../rules.ts';
import { defineSetting, type Read } from '../setting.ts';

/** `file` is a path; its image is served by the gateway. */
export type LogoConfig = { readonly url: string } | { readonly file: string };

export const siteSettings = {
  logoUrl: defineSetting('SERVICE_LOGO_URL', imageUrl, {
    summary: 'The address of the logo on the front page.',
    details:
      'Browsers load it from there, so its host learns who visits; SERVICE_LOGO_FILE avoids that. Square images look best.',
  }),
  logoFile: defineSetting('SERVICE_LOGO_FILE', imageFile, {
    summary: 'The file of the logo on the front page.',
    details:
      'An SVG, PNG, JPEG or WebP image of at most 1 MiB. It is read at start, and served at `/logo`.',
  }),
  showsTools: defineSetting('SITE_SHOWS_TOOLS', flag, {
    default: { value: false },
    summary: 'Whether the pages list the tools before anybody has logged in.',
    details:
      '`true` shows their names and descriptions to everyone who can reach the gateway, as far as the [rules](rules.md) hold for everybody.',
  }),
};

export const readSiteConfig = (read: Read) => ({
  logo: readLogoConfig(read),
  showsTools: read(siteSettings.showsTools),
});

function readLogoConfig(read: Read): LogoConfig | undefined {
  const [url, file] = [read(siteSettings.logoUrl), read(siteSettings.logoFile)];
  if (url !== undefined) return { url };
  return file === undefined ? undefined : { file };
}
