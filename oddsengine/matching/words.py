"""Word lists for team names: synonyms, insignificant words, and words that denote another team of a club.

Words are in the form of `catalog.normalise`. Aliases of catalog teams take precedence. A word belongs here if it
applies to many teams; a single team belongs in the catalog.
"""


def _table(text: str) -> dict[str, str]:
    """Parse lines of `a b: c, d`, where c and d mean a b."""
    pairs = (line.split(":") for line in text.strip().splitlines())
    return {word.strip(): meaning.strip() for meaning, words in pairs for word in words.split(",")}


def _set(text: str) -> frozenset[str]:
    """Parse lines of `a, b c, d`."""
    return frozenset(word.strip() for word in text.replace("\n", " ").split(","))


PERSONS = _set("""
tennis, table_tennis, badminton, squash, padel, mma, boxing, darts, snooker, golf, chess, beach_volleyball
""")
COLLEGES = ("ncaa", "wncaa", "college")  # prefixes of college leagues
WOMENS_LEAGUES = _set("""
wnba, nwsl, wsl, wta, wncaab, ncaaw, wbbl, wpl, pwhl, wbl, lpga, women, womens, femenina, feminine, frauen
""")

WOMEN = _set("""
women, womens, woman, ladies, femenino, femenina, feminino, feminina, feminine, feminin, feminines, frauen, fem,
female, femminile, girls, wfc, damer, dames, kvinner, vrouwen, dam
""")
SECOND = _set("""
ii, b, 2, reserves, reserve, res, academy, nxt, challengers, junior, youth, primavera, amateure
""")

SYNONYMS = _table("""
united: utd, utda
manchester: man
saint: st, sankt, sao, sint
munich: munchen, muenchen
cologne: koln, koeln
prague: praha
belgrade: beograd
moscow: moskva
vienna: wien
rome: roma
milan: milano, mailand
turin: torino
copenhagen: kobenhavn
lisbon: lisboa
bucharest: bucuresti
warsaw: warszawa
kyiv: kiev, kyjiv, kijow
nuremberg: nurnberg, nuernberg
dusseldorf: duesseldorf
seville: sevilla
gothenburg: goteborg
dynamo: dinamo, dynama
lokomotiv: lokomotiva
athletic: ath
bengaluru: bangalore
and: y, e, und, et
""")

# Kinds of club: insignificant unless nothing else is left.
EMPTY = _set("""
fc, cf, sc, ac, afc, as, ss, ssc, us, sv, vfl, vfb, tsv, tsg, fsv, bsc, bk, fk, if, sk, nk, hc, hk, ks, kv, ud, cd,
rc, rcd, ca, cr, ec, se, sd, ad, cp, rfc, ccc, gfc, sfc, cfc, hf, aik, aif, acf, bc, kc, ff, is, sl, rk, mt, tbv,
thw, hsg, sg, spvgg, club, clube, sporting_club, the, of, de, da, do, del, di, des, du, and, calcio, rugby, volley,
basket, basketball, baloncesto, esports, esport, gaming, team, clan, tv, bv, cfr, csm, afk, psk, osk, sko, sco, osc,
aj, og, ogc, jk, js, jc, fotball, futbol, football, kf, ik, hb, deportiva, esporte, balompie
""")
# Words omitted in short forms of a club.
KINDS = _set("""
united, city, town, county, rovers, wanderers, athletic, albion, hotspur, rangers, argyle, alexandra, stanley,
forest, orient, wednesday, harriers, villa, borough, hove, end, north_end, palace
""")
# Places and words shared by several teams of a league; not sufficient on their own.
SHARED = _set("""
dundee, manchester, sheffield, bristol, nottingham, madrid, milan, munich, berlin, hamburg, moscow, belgrade,
prague, athens, lisbon, london, istanbul, new york, los angeles, chicago, sydney, melbourne, adelaide, paris, rome,
turin, birmingham, liverpool, bucharest, sofia, zagreb, kyiv, vienna, zurich, cairo, rio, rio de janeiro, buenos
aires, montevideo, santiago, seoul, tokyo, osaka, brisbane, barcelona, seville, genoa, verona, glasgow, edinburgh,
copenhagen, stockholm, brussels, bruges, krakow, warsaw, budapest, saint petersburg, independiente, racing, al
hilal, al ahli, al ahly, al ittihad, al nassr, al shabab, estudiantes, san martin, central cordoba, gimnasia,
sporting, dynamo, cska, spartak, torpedo, real, atletico, athletic, athletico, union, nacional, america, olympique,
metallurg, universitario, universidad, deportivo, eintracht, fortuna, borussia, preussen, arminia, hapoel, maccabi,
beitar, partizan, inter, internacional, vitoria, santa cruz, guinea, congo, ireland, korea, sudan, samoa, niger,
virtus, olimpia, stade, racing club, red star, cordoba, san jose, san diego, rosario, river, boca, team, western,
hurricane
""")
# Words that denote another team than the name without them.
TELLING = _set("""
north, south, east, west, northern, southern, eastern, western, central, state, tech, port, equatorial, southeast,
southeastern, northeast, northeastern, southwest, southwestern, northwest, northwestern, am, aandm, new, greater,
upper, lower, real, atletico, inter, dynamo, spartak, locomotive, all, stars
""")

COUNTRIES = _table("""
united states: usa, us, united states of america, usmnt, uswnt
south korea: korea republic, republic of korea, korea rep
north korea: korea dpr, dpr korea
ivory coast: cote divoire
czechia: czech republic
turkey: turkiye, turkiye cumhuriyeti
netherlands: holland, the netherlands
republic of ireland: ireland republic, rep of ireland, eire
north macedonia: fyr macedonia, macedonia
dr congo: congo dr, democratic republic of congo, democratic republic of the congo
congo: congo brazzaville, republic of the congo
cape verde: cabo verde, cape verde islands
brazil: brasil
bosnia and herzegovina: bosnia, bosnia herzegovina
iran: ir iran
china: china pr
hong kong: hong kong china
taiwan: chinese taipei
eswatini: swaziland
trinidad and tobago: trinidad tobago
united arab emirates: uae
saudi arabia: ksa
new zealand: nz
kyrgyzstan: kyrgyz republic
""")  # fmt: skip
NATIONS = frozenset(COUNTRIES.values()) | _set("""
niger, nigeria, austria, australia, iran, iraq, mali, malta, malawi, slovakia, slovenia, dominica, dominican
republic, guinea, guinea bissau, equatorial guinea, papua new guinea, sudan, south sudan, northern ireland, samoa,
american samoa, gambia, zambia, england, scotland, wales, france, italy, spain, germany, portugal, japan, mexico,
argentina, chile, latvia, lithuania, oman, jordan, norway, sweden, denmark, finland, ghana, gabon, guyana, uganda,
rwanda, moldova, monaco, libya, liberia, algeria, albania, armenia
""")

COLLEGE_NAMES = _table("""
north carolina: unc, n carolina
connecticut: uconn, conn
massachusetts: umass, u mass
southern california: usc
mississippi: ole miss
pittsburgh: pitt
south florida: usf, s florida
central florida: ucf
nevada las vegas: unlv
virginia commonwealth: vcu
southern methodist: smu
texas christian: tcu
brigham young: byu
louisiana state: lsu
texas el paso: utep
texas san antonio: utsa, ut san antonio
texas arlington: uta, ut arlington
texas rio grande valley: utrgv, ut rio grande valley
tennessee martin: ut martin
florida international: fiu
florida atlantic: fau
florida gulf coast: fgcu
alabama birmingham: uab
arkansas pine bluff: uapb, ar pine bluff
maryland baltimore county: umbc
maryland eastern shore: umes
missouri kansas city: umkc, kansas city
north carolina state: nc state, n carolina state, n c state
north carolina central: nc central, nccu
north carolina at: nc at, north carolina a and t, nc a and t
north carolina wilmington: unc wilmington, uncw
north carolina greensboro: unc greensboro, uncg
north carolina asheville: unc asheville
california: cal, cal berkeley
california los angeles: ucla
california irvine: uc irvine, uci
california davis: uc davis
california santa barbara: uc santa barbara, ucsb
california san diego: uc san diego, ucsd
california riverside: uc riverside, ucr
cal state fullerton: cs fullerton, csu fullerton, fullerton
cal state northridge: cs northridge, csun, csu northridge
cal state bakersfield: cs bakersfield, csu bakersfield, bakersfield
california polytechnic: cal poly, cal poly slo
middle tennessee: middle tennessee state, mtsu, m tennessee
louisiana: louisiana lafayette, ul lafayette, la lafayette
louisiana monroe: ul monroe, ulm, la monroe
miami: miami fl, miami florida, miami fla
miami ohio: miami oh, miami of ohio
saint johns: saint johns ny
loyola chicago: loyola chi, loyola il, loyola illinois
loyola maryland: loyola md
loyola marymount: lmu
saint marys: saint marys ca, saint marys california
saint francis pa: saint francis pennsylvania
boston university: boston u, bu
boston college: bc
long island: liu, long island university
southern mississippi: southern miss, so miss, usm
illinois chicago: uic
purdue fort wayne: ipfw, pfw
southern illinois edwardsville: siue, siu edwardsville
stephen f austin: sfa
texas am corpus christi: texas am cc, am corpus christi
texas am commerce: east texas am
""")
COLLEGE_WORDS = _table("""
eastern: e
western: w
northern: n
southern: s, so
central: c, cent
georgia: ga
louisiana: la
mississippi: miss
florida: fla
michigan: mich
california: calif
tennessee: tenn
kentucky: ky
illinois: ill
university: univ
""")
MASCOTS = _set("""
aces, aggies, anteaters, aztecs, badgers, bearcats, bearkats, bears, beacons, beavers, bengals, billikens, bison,
blazers, bluejays, bobcats, boilermakers, braves, broncos, bruins, buccaneers, buckeyes, buffaloes, bulldogs, bulls,
camels, cardinal, cardinals, catamounts, cavaliers, chanticleers, chargers, chippewas, cochise, colonels, colonials,
commodores, cornhuskers, cougars, cowboys, cowgirls, crimson, crusaders, cyclones, deacons, demons, devils,
dolphins, dons, dragons, ducks, dukes, dutchmen, eagles, explorers, falcons, fighting, flames, flash, flashes,
flyers, friars, frogs, gaels, gamecocks, gators, gauchos, golden, gophers, governors, greyhounds, griffins,
grizzlies, hatters, hawkeyes, hawks, heels, hens, highlanders, hilltoppers, hoosiers, hornets, horned, hoyas,
hurricanes, huskies, illini, irish, jackets, jackrabbits, jaguars, jaspers, jayhawks, kangaroos, keydets, knights,
lancers, leathernecks, leopards, lions, lobos, longhorns, lopes, lumberjacks, mastodons, matadors, mavericks, mean,
midshipmen, miners, minutemen, minutewomen, mocs, monarchs, mountaineers, musketeers, mustangs, nanooks, nittany,
norse, orange, ospreys, owls, pack, paladins, panthers, patriots, peacocks, penguins, phoenix, pilots, pioneers,
pirates, pride, privateers, purple, quakers, racers, ragin, raiders, rainbow, ramblers, rams, rattlers, razorbacks,
rebels, redbirds, redhawks, retrievers, revolutionaries, roadrunners, rockets, roos, royals, running, saints,
salukis, seahawks, seawolves, seminoles, shockers, skyhawks, sooners, spartans, spiders, stags, storm, sycamores,
tar, terrapins, terriers, texans, thunderbirds, thundering, tigers, titans, toreros, tribe, tritons, trojans, utes,
vandals, vaqueros, vikings, volunteers, vols, warhawks, warriors, waves, wildcats, wolfpack, wolverines, wolves,
yellow, zips, herd, tide, demon, blue, red, green, black, hurricane, cajuns, big, rainbows, scarlet, mastodon, lady,
swans, crows, magpies, roosters, rabbitohs, sea, swallows, marines, chiefs, blues, stars, jets, kings, magic, heat,
thunder, bombers, cats, dockers, giants, suns, outlaws, foxes, sharks, vipers, lightning
""")

CLUBS = _table("""
queens park rangers: qpr
west bromwich albion: west brom, wba
heart of midlothian: hearts
glasgow rangers: rangers
new york city: nycfc, nyc
new york red bulls: ny red bulls, red bull new york
los angeles galaxy: la galaxy
los angeles football: lafc, la fc, los angeles fc
sporting kansas city: sporting kc
montreal impact: cf montreal, montreal
atletico mineiro: atletico mg
athletico paranaense: athletico pr, atletico pr, atletico paranaense
atletico goianiense: atletico go
america mineiro: america mg
red star belgrade: crvena zvezda, crvena zvezda belgrade, red star
sporting lisbon: sporting cp, sporting clube de portugal
union saint gilloise: royale union sg, royale union saint gilloise, union sg
vitoria guimaraes: vitoria sc, vitoria de guimaraes, guimaraes
chivas guadalajara: guadalajara chivas, guadalajara, cd guadalajara, chivas
pumas unam: universidad nacional, unam pumas, pumas
hertha berlin: hertha bsc, hertha
natus vincere: navi
ninjas in pyjamas: nip
mouz: mousesports
bilibili gaming: blg
top esports: tes
jd gaming: jdg
invictus gaming: ig
hanwha life: hle
""")

PENDING = _set("""
tbd, tba, tbc, to be determined, to be announced, to be confirmed, to be decided, winner, loser, unknown, qualifier,
bye, home, away, home team, away team, player 1, player 2, team 1, team 2, team a, team b
""")
SHORT_NAMES = _table("""
michael: mike, mikey
alexander: alex, sasha, sascha, aleksandr
christopher: chris, kris
matthew: matt
nicholas: nick, nic, nico, nicolas
daniel: dan, danny
joseph: joe, joey
william: will, bill, billy, willie
robert: rob, bob, bobby, robbie
thomas: tom, tommy
james: jim, jimmy, jimmie
kenneth: ken, kenny
benjamin: ben, benny
samuel: sam, sammy
anthony: tony
gregory: greg
jeffrey: jeff, geoff
jonathan: jon, johnathan
joshua: josh
zachary: zach, zack, zac
cameron: cam
patrick: pat
stephen: steve, steven
edward: ed, eddie
andrew: drew
charles: charlie, chuck
cornelius: cj
maxwell: max
mitchell: mitch
nathaniel: nate, nathan
david: dave
timothy: tim
ronald: ron, ronnie
gabriel: gabe
philip: phil, phillip
vincent: vince, vinny
""")
