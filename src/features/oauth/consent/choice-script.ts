// Says whether the consent page is in front. CSS alone cannot: it knows neither tabs nor windows, and its clock
// runs, and its pointer is remembered, in a page that nobody sees.

/**
 * The class `in-front` is there while the page is visible, has the focus of its window, and is drawn; the moment
 * before the buttons begins with it (html-page-style.ts). A page that goes behind others forgets the moment, and
 * the keyboard's focus goes back from the buttons to what is seen in their place. A key that is held down repeats itself, and must not press a button either.
 */
export const CHOICE_SCRIPT = `
(() => {
  const page = document.documentElement;
  const choice = document.querySelector('.choice');
  const isInFront = () => document.visibilityState === 'visible' && document.hasFocus();
  function goBehind() {
    page.classList.remove('in-front');
    if (choice.contains(document.activeElement)) document.querySelector('.before-choice').focus();
  }
  // A page that is not drawn gets no frame.
  function comeToFront() {
    requestAnimationFrame(() => {
      // Computed while the class is away: an animation starts anew only if a style without it was computed.
      if (!page.classList.contains('in-front')) getComputedStyle(choice).animationName;
      if (isInFront()) page.classList.add('in-front');
    });
  }
  addEventListener('focus', comeToFront);
  addEventListener('pageshow', comeToFront);
  addEventListener('blur', goBehind);
  addEventListener('pagehide', goBehind);
  document.addEventListener('visibilitychange', () => (isInFront() ? comeToFront() : goBehind()));
  addEventListener('keydown', (event) => {
    if (event.repeat && (event.key === 'Enter' || event.key === ' ')) event.preventDefault();
  });
  comeToFront();
})();
`;
