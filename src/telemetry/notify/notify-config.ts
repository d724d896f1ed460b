// §22.7: the member `notify` of the configuration file.

import { choice, text } from '../../config/file/shapes/scalar.ts';
import { defineMember, list, object, type Shape } from '../../config/file/shapes/shape.ts';
import { httpUrl, matching } from '../../config/rules.ts';
import { NOTIFICATION_KINDS, type NotifyConfig } from './notify.ts';

/** Standard Webhooks: 24 to 64 random bytes in base64. */
const SECRET = /^whsec_[A-Za-z0-9+/]{32,86}={0,2}$/;

const members = {
  url: defineMember(
    'url',
    text(
      { ...httpUrl, allowed: `${httpUrl.allowed}, for example https://hooks.example.com/postern` },
      { pattern: '^https?://', isSecret: true },
    ),
    'The webhook that each notification is sent to, for example an incoming webhook of Slack.',
  ),
  secret: defineMember(
    'secret',
    text(matching(SECRET, 'whsec_ followed by 24 to 64 random bytes in base64'), {
      pattern: SECRET.source,
      isSecret: true,
    }),
    'Signs each notification, as Standard Webhooks describes it. Without it, they are not signed.',
  ),
  on: defineMember(
    'on',
    list(choice(...NOTIFICATION_KINDS), {
      allowed: `a list of ${NOTIFICATION_KINDS.join(', ')}`,
      isNotEmpty: true,
    }),
    'The subjects of notifications. Default: all of them.',
  ),
};

export const notifyShape: Shape<NotifyConfig> = object({
  allowed: 'an object with url',
  members: Object.values(members),
  schema: { required: ['url'] },
  build({ has, read, report }) {
    const url = read(members.url);
    const secret = read(members.secret);
    const on = read(members.on) ?? NOTIFICATION_KINDS;
    if (!has(members.url)) report('"url" is missing: the address of the webhook.');
    return url === undefined ? undefined : { url, secret, on };
  },
});
