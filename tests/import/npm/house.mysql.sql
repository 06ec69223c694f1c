/*M!999999\- enable the sandbox mode */ 
-- MariaDB dump 10.19  Distrib 10.11.19-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: localhost    Database: npm
-- ------------------------------------------------------
-- Server version	10.11.19-MariaDB-0+deb12u1

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;

--
-- Table structure for table `access_list`
--

DROP TABLE IF EXISTS `access_list`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `access_list` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `created_on` datetime NOT NULL,
  `modified_on` datetime NOT NULL,
  `owner_user_id` int(11) NOT NULL,
  `is_deleted` int(11) NOT NULL DEFAULT 0,
  `name` varchar(255) NOT NULL,
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`meta`)),
  `satisfy_any` int(11) NOT NULL DEFAULT 0,
  `pass_auth` int(11) NOT NULL DEFAULT 1,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `access_list`
--

LOCK TABLES `access_list` WRITE;
/*!40000 ALTER TABLE `access_list` DISABLE KEYS */;
INSERT INTO `access_list` VALUES
(1,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'family','{}',0,0),
(2,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'at home','{}',0,1);
/*!40000 ALTER TABLE `access_list` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `access_list_auth`
--

DROP TABLE IF EXISTS `access_list_auth`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `access_list_auth` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `created_on` datetime NOT NULL,
  `modified_on` datetime NOT NULL,
  `access_list_id` int(11) NOT NULL,
  `username` varchar(255) NOT NULL,
  `password` varchar(255) NOT NULL,
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`meta`)),
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `access_list_auth`
--

LOCK TABLES `access_list_auth` WRITE;
/*!40000 ALTER TABLE `access_list_auth` DISABLE KEYS */;
INSERT INTO `access_list_auth` VALUES
(1,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,'alice','a long password','{}'),
(2,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,'bob','another long one','{}');
/*!40000 ALTER TABLE `access_list_auth` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `access_list_client`
--

DROP TABLE IF EXISTS `access_list_client`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `access_list_client` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `created_on` datetime NOT NULL,
  `modified_on` datetime NOT NULL,
  `access_list_id` int(11) NOT NULL,
  `address` varchar(255) NOT NULL,
  `directive` varchar(255) NOT NULL,
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`meta`)),
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `access_list_client`
--

LOCK TABLES `access_list_client` WRITE;
/*!40000 ALTER TABLE `access_list_client` DISABLE KEYS */;
INSERT INTO `access_list_client` VALUES
(1,'2024-06-01 10:00:00','2024-06-01 10:00:00',2,'10.0.0.0/8','allow','{}'),
(2,'2024-06-01 10:00:00','2024-06-01 10:00:00',2,'192.0.2.7','allow','{}');
/*!40000 ALTER TABLE `access_list_client` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `audit_log`
--

DROP TABLE IF EXISTS `audit_log`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `audit_log` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `created_on` datetime NOT NULL,
  `modified_on` datetime NOT NULL,
  `user_id` int(11) NOT NULL,
  `object_type` varchar(255) NOT NULL DEFAULT '',
  `object_id` int(11) NOT NULL DEFAULT 0,
  `action` varchar(255) NOT NULL,
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`meta`)),
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `audit_log`
--

LOCK TABLES `audit_log` WRITE;
/*!40000 ALTER TABLE `audit_log` DISABLE KEYS */;
INSERT INTO `audit_log` VALUES
(1,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,'proxy-host',1,'created','{\"domain_names\":[\"media.example.com\"]}');
/*!40000 ALTER TABLE `audit_log` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `certificate`
--

DROP TABLE IF EXISTS `certificate`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `certificate` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `created_on` datetime NOT NULL,
  `modified_on` datetime NOT NULL,
  `owner_user_id` int(11) NOT NULL,
  `is_deleted` int(11) NOT NULL DEFAULT 0,
  `provider` varchar(255) NOT NULL,
  `nice_name` varchar(255) NOT NULL DEFAULT '',
  `domain_names` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`domain_names`)),
  `expires_on` datetime NOT NULL,
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`meta`)),
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `certificate`
--

LOCK TABLES `certificate` WRITE;
/*!40000 ALTER TABLE `certificate` DISABLE KEYS */;
INSERT INTO `certificate` VALUES
(1,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'letsencrypt','media.example.com','[\"media.example.com\"]','2024-09-01 10:00:00','{\"letsencrypt_agree\":true,\"dns_challenge\":false}'),
(2,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'other','inside','[\"*.inside.example.com\"]','2026-09-01 10:00:00','{}');
/*!40000 ALTER TABLE `certificate` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `dead_host`
--

DROP TABLE IF EXISTS `dead_host`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `dead_host` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `created_on` datetime NOT NULL,
  `modified_on` datetime NOT NULL,
  `owner_user_id` int(11) NOT NULL,
  `is_deleted` int(11) NOT NULL DEFAULT 0,
  `domain_names` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`domain_names`)),
  `certificate_id` int(11) NOT NULL DEFAULT 0,
  `ssl_forced` int(11) NOT NULL DEFAULT 0,
  `advanced_config` text NOT NULL DEFAULT '',
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`meta`)),
  `http2_support` int(11) NOT NULL DEFAULT 0,
  `enabled` int(11) NOT NULL DEFAULT 1,
  `hsts_enabled` int(11) NOT NULL DEFAULT 0,
  `hsts_subdomains` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `dead_host`
--

LOCK TABLES `dead_host` WRITE;
/*!40000 ALTER TABLE `dead_host` DISABLE KEYS */;
INSERT INTO `dead_host` VALUES
(1,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'[\"parked.example.com\"]',0,0,'','{}',0,1,0,0);
/*!40000 ALTER TABLE `dead_host` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `migrations`
--

DROP TABLE IF EXISTS `migrations`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `migrations` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `name` varchar(255) DEFAULT NULL,
  `batch` int(11) DEFAULT NULL,
  `migration_time` datetime DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `migrations`
--

LOCK TABLES `migrations` WRITE;
/*!40000 ALTER TABLE `migrations` DISABLE KEYS */;
INSERT INTO `migrations` VALUES
(1,'20180618015850_initial.js',1,'0000-00-00 00:00:00'),
(2,'20180929054513_websockets.js',1,'0000-00-00 00:00:00');
/*!40000 ALTER TABLE `migrations` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `proxy_host`
--

DROP TABLE IF EXISTS `proxy_host`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `proxy_host` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `created_on` datetime NOT NULL,
  `modified_on` datetime NOT NULL,
  `owner_user_id` int(11) NOT NULL,
  `is_deleted` int(11) NOT NULL DEFAULT 0,
  `domain_names` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`domain_names`)),
  `forward_host` varchar(255) NOT NULL,
  `forward_port` int(11) NOT NULL,
  `access_list_id` int(11) NOT NULL DEFAULT 0,
  `certificate_id` int(11) NOT NULL DEFAULT 0,
  `ssl_forced` int(11) NOT NULL DEFAULT 0,
  `caching_enabled` int(11) NOT NULL DEFAULT 0,
  `block_exploits` int(11) NOT NULL DEFAULT 0,
  `advanced_config` text NOT NULL DEFAULT '',
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`meta`)),
  `allow_websocket_upgrade` int(11) NOT NULL DEFAULT 0,
  `http2_support` int(11) NOT NULL DEFAULT 0,
  `forward_scheme` varchar(255) NOT NULL DEFAULT 'http',
  `enabled` int(11) NOT NULL DEFAULT 1,
  `locations` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`locations`)),
  `hsts_enabled` int(11) NOT NULL DEFAULT 0,
  `hsts_subdomains` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=6 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `proxy_host`
--

LOCK TABLES `proxy_host` WRITE;
/*!40000 ALTER TABLE `proxy_host` DISABLE KEYS */;
INSERT INTO `proxy_host` VALUES
(1,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'[\"media.example.com\",\"films.example.com\"]','10.0.0.5',8096,0,1,1,0,1,'','{}',1,1,'http',1,'[]',1,1),
(2,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'[\"notes.inside.example.com\"]','notes-1',443,1,2,1,1,0,'','{}',0,1,'https',1,'[{\"path\":\"/api\",\"advanced_config\":\"client_max_body_size 5m;\",\"forward_scheme\":\"http\",\"forward_host\":\"10.0.0.6/v2\",\"forward_port\":8080},{\"path\":\"= /health\",\"advanced_config\":\"\",\"forward_scheme\":\"http\",\"forward_host\":\"10.0.0.7\",\"forward_port\":8081}]',0,0),
(3,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'[\"printer.example.com\"]','10.0.0.9',631,2,0,0,0,0,'location /queue {\n  proxy_pass http://10.0.0.9:632;\n}\nadd_header X-From \"house\" always;','{}',0,0,'http',1,NULL,0,0),
(4,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'[\"old.example.com\"]','10.0.0.10',80,0,0,0,0,0,'','{}',0,0,'http',0,'[]',0,0),
(5,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,1,'[\"gone.example.com\"]','10.0.0.11',80,0,0,0,0,0,'','{}',0,0,'http',1,'[]',0,0);
/*!40000 ALTER TABLE `proxy_host` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `redirection_host`
--

DROP TABLE IF EXISTS `redirection_host`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `redirection_host` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `created_on` datetime NOT NULL,
  `modified_on` datetime NOT NULL,
  `owner_user_id` int(11) NOT NULL,
  `is_deleted` int(11) NOT NULL DEFAULT 0,
  `domain_names` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`domain_names`)),
  `forward_domain_name` varchar(255) NOT NULL,
  `preserve_path` int(11) NOT NULL DEFAULT 0,
  `certificate_id` int(11) NOT NULL DEFAULT 0,
  `ssl_forced` int(11) NOT NULL DEFAULT 0,
  `block_exploits` int(11) NOT NULL DEFAULT 0,
  `advanced_config` text NOT NULL DEFAULT '',
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`meta`)),
  `http2_support` int(11) NOT NULL DEFAULT 0,
  `enabled` int(11) NOT NULL DEFAULT 1,
  `hsts_enabled` int(11) NOT NULL DEFAULT 0,
  `hsts_subdomains` int(11) NOT NULL DEFAULT 0,
  `forward_scheme` varchar(255) NOT NULL DEFAULT '$scheme',
  `forward_http_code` int(11) NOT NULL DEFAULT 302,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `redirection_host`
--

LOCK TABLES `redirection_host` WRITE;
/*!40000 ALTER TABLE `redirection_host` DISABLE KEYS */;
INSERT INTO `redirection_host` VALUES
(1,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'[\"www.example.com\"]','example.com',1,0,0,0,'','{}',0,1,0,0,'https',301),
(2,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,'[\"cinema.example.com\"]','media.example.com/web',0,0,0,0,'','{}',0,1,0,0,'auto',302);
/*!40000 ALTER TABLE `redirection_host` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `setting`
--

DROP TABLE IF EXISTS `setting`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `setting` (
  `id` varchar(255) NOT NULL,
  `name` varchar(100) NOT NULL,
  `description` varchar(255) NOT NULL,
  `value` varchar(255) NOT NULL,
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`meta`)),
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `setting`
--

LOCK TABLES `setting` WRITE;
/*!40000 ALTER TABLE `setting` DISABLE KEYS */;
INSERT INTO `setting` VALUES
('default-site','Default Site','What to show when Nginx is hit with an unknown Host','444','{\"redirect\":\"\",\"html\":\"\"}');
/*!40000 ALTER TABLE `setting` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `stream`
--

DROP TABLE IF EXISTS `stream`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `stream` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `created_on` datetime NOT NULL,
  `modified_on` datetime NOT NULL,
  `owner_user_id` int(11) NOT NULL,
  `is_deleted` int(11) NOT NULL DEFAULT 0,
  `incoming_port` int(11) NOT NULL,
  `forwarding_host` varchar(255) NOT NULL,
  `forwarding_port` int(11) NOT NULL,
  `tcp_forwarding` int(11) NOT NULL DEFAULT 0,
  `udp_forwarding` int(11) NOT NULL DEFAULT 0,
  `meta` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`meta`)),
  `enabled` int(11) NOT NULL DEFAULT 1,
  `certificate_id` int(11) NOT NULL DEFAULT 0,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `stream`
--

LOCK TABLES `stream` WRITE;
/*!40000 ALTER TABLE `stream` DISABLE KEYS */;
INSERT INTO `stream` VALUES
(1,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,2222,'10.0.0.5',22,1,0,'{}',1,0),
(2,'2024-06-01 10:00:00','2024-06-01 10:00:00',1,0,5353,'10.0.0.5',53,0,1,'{}',1,0);
/*!40000 ALTER TABLE `stream` ENABLE KEYS */;
UNLOCK TABLES;

--
-- Table structure for table `user`
--

DROP TABLE IF EXISTS `user`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `user` (
  `id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `created_on` datetime NOT NULL,
  `modified_on` datetime NOT NULL,
  `is_deleted` int(11) NOT NULL DEFAULT 0,
  `is_disabled` int(11) NOT NULL DEFAULT 0,
  `email` varchar(255) NOT NULL,
  `name` varchar(255) NOT NULL,
  `nickname` varchar(255) NOT NULL,
  `avatar` varchar(255) NOT NULL,
  `roles` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL CHECK (json_valid(`roles`)),
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=2 DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `user`
--

LOCK TABLES `user` WRITE;
/*!40000 ALTER TABLE `user` DISABLE KEYS */;
INSERT INTO `user` VALUES
(1,'2024-06-01 10:00:00','2024-06-01 10:00:00',0,0,'admin@example.com','Administrator','Admin','','[\"admin\"]');
/*!40000 ALTER TABLE `user` ENABLE KEYS */;
UNLOCK TABLES;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

-- Dump completed on 2026-11-30 16:40:24
